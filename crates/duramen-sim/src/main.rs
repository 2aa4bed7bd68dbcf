//! `duramen-sim`, found and run as `duramen sim`.

fn main() -> std::process::ExitCode {
    duramen_sim::run()
}
