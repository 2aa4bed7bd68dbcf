//! `duramen-bench`, found and run as `duramen bench`.

fn main() -> std::process::ExitCode {
    duramen_bench::run()
}
