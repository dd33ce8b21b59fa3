//! Compiles components for programs that embed toolgate and cannot run themselves as their own compiler. `toolgate` does
//! not need it.

fn main() -> std::process::ExitCode {
    toolgate_sandbox::compile_child(std::env::args_os().skip(1))
}
