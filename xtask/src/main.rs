//! `cargo xtask`: set-up, checks, demo and benchmarks. CI and developers run the same commands.
//!
//! `args` reads the command line, each task has a file of its own, and only `console` prints.

mod args;
mod bench;
mod build;
mod console;
mod demo;
mod example;
mod isolation;
mod languages;
mod power_loss;
mod schema_suite;
mod sdk_docs;
mod setup;
mod test;
mod tools;
mod web;
mod workspace;

use std::process::ExitCode;

use args::Task;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let task = match Task::parse(&arguments) {
        Ok(task) => task,
        Err(mistake) => {
            console::failure(&format!("{mistake}\n\n{}", args::HELP));
            return ExitCode::from(2);
        }
    };
    let done = match task {
        Task::Help => {
            console::line(args::HELP);
            Ok(())
        }
        Task::Setup => setup::run(),
        Task::Build => build::release(),
        Task::Test { without } => test::run(&without),
        Task::Demo(options) => demo::run(&options),
        Task::Bench { names } => bench::run(&names),
        Task::Isolation { words } => isolation::run(&words),
        Task::PowerLoss { contents, seed } => power_loss::run(contents, seed),
        Task::Soak { words } => example::run("soak", &words),
        Task::SdkDocs { check } => sdk_docs::run(check),
        Task::Kills { words } => example::run("kills", &words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::failure(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
