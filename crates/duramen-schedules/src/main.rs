//! Explores schedules of the engine's threads: `duramen-schedules [MODEL|all [SEED]]`.

fn main() -> std::process::ExitCode {
    duramen_schedules::schedules::run_arguments(std::env::args().skip(1))
}
