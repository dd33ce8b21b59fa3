//! Compiles components for a host, and is nothing else: for programs that embed toolgate and cannot be run again as their own
//! compiler. `toolgate` itself needs it not.

fn main() -> std::process::ExitCode {
    toolgate_sandbox::compile_child(std::env::args_os().skip(1))
}
