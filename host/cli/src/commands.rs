//! Every command of the binary, one file each.

mod answer;
mod audit;
mod author;
mod build;
mod call;
mod check;
mod config;
mod conform;
mod dev;
mod events;
mod export;
mod grants;
mod new;
mod pack;
mod pending;
mod policy;
mod serve;
mod show;
mod submit;
mod token;
mod tools;

use anyhow::Context as _;
use toolgate::CompilerProgram;

use crate::args::Command;
use crate::report::Report;
use crate::terminal::Terminal;

/// Carries a command out.
pub(crate) fn run(command: Command, terminal: &Terminal) -> Result<(), Report> {
    match command {
        Command::Serve(args) => serve::run(args, terminal),
        Command::Check(args) => check::run(&args, terminal),
        Command::Conform(args) => conform::run(&args, terminal),
        Command::Pack(args) => pack::run(&args, terminal),
        Command::Grants(args) => grants::run(&args, terminal),
        Command::Call(args) => call::run(&args, terminal),
        Command::Tools(args) => tools::run(&args, terminal),
        Command::Submit(args) => submit::run(&args, terminal),
        Command::Pending(args) => pending::run(&args, terminal),
        Command::Show(args) => show::run(&args, terminal),
        Command::Approve(args) => answer::approve(&args, terminal),
        Command::Deny(args) => answer::deny(&args, terminal),
        Command::Answer(args) => answer::answer(&args, terminal),
        Command::Events(args) => events::run(&args, terminal),
        Command::Audit(args) => audit::run(&args, terminal),
        Command::Policy(args) => policy::run(&args, terminal),
        Command::New(args) => new::run(&args, terminal),
        Command::Build(args) => build::run(&args, terminal),
        Command::Dev(args) => dev::run(&args, terminal),
        Command::Token(args) => token::run(args.command, terminal),
        Command::Config(args) => config::run(&args, terminal),
        Command::Export(args) => export::run(&args, terminal),
        // It ends in `main`, before there is a log.
        Command::CompileComponent(_) => Ok(()),
    }
}

/// This binary, run again as the compiler.
fn compiler() -> anyhow::Result<CompilerProgram> {
    CompilerProgram::itself(["compile-component"]).context("cannot find out which program this is")
}
