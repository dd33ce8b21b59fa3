//! `build`: from a plugin's folder, in whatever language, to a component that a host loads.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use domain::Digest;
use kit::{Failed, Project};

use super::author::{self, Made};
use crate::args::Build;
use crate::report::Report;
use crate::terminal::{Ink, Terminal};

pub(super) fn run(args: &Build, terminal: &Terminal) -> Result<(), Report> {
    let say = author::say(terminal);
    let kit = author::kit(&args.toolchains, &say)?;
    let told = |error: Failed| author::failed(&error);
    let project = Project::open(&args.folder, args.lang).map_err(told)?;
    let made = author::make(&kit, &project, &author::sandbox(&args.toolchains.cache)?)?;
    let file = match &args.out {
        Some(out) => out.clone(),
        // As short as it was typed.
        None => args.folder.join("build").join(format!("{}.wasm", project.name())),
    };
    // What is there stays until it is replaced by something that a host would load.
    if args.out.is_none() {
        std::fs::create_dir_all(project.output())?;
    }
    author::write(&file, &made.packed.bytes)?;
    terminal.line(summary(&file, &made, terminal))?;
    Ok(())
}

/// What was built, in words.
pub(super) fn summary(file: &Path, made: &Made, terminal: &Terminal) -> String {
    let shown = text::line(&file.display().to_string()).into_owned();
    let tools: Vec<_> = made.packed.tools.iter().map(|tool| text::line(tool).into_owned()).collect();
    let mut summary = format!("{} {shown}: {}\n", terminal.ink(Ink::Good, "built"), tools.join(", "));
    let with: Vec<_> = made.built.tools.iter().map(|tool| text::line(tool).into_owned()).collect();
    let (size, took) = (size(made.packed.bytes.len()), seconds(made.built.took));
    let _ = writeln!(summary, "  {size} in {took}, with {}", with.join(", "));
    let _ = write!(summary, "  component {}", Digest::of(&made.packed.bytes));
    summary
}

/// A number of bytes for people.
fn size(bytes: usize) -> String {
    let (whole, tenths) = (bytes / 1_000_000, bytes % 1_000_000 / 100_000);
    if bytes < 1_000_000 { format!("{} KB", bytes.div_ceil(1000)) } else { format!("{whole}.{tenths} MB") }
}

/// A time for people.
fn seconds(time: Duration) -> String {
    format!("{}.{} s", time.as_secs(), time.subsec_millis() / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        let sizes = [0, 1, 999, 1001, 999_999, 1_000_000, 18_550_000].map(size);
        assert_eq!(sizes, ["0 KB", "1 KB", "1 KB", "2 KB", "1000 KB", "1.0 MB", "18.5 MB"]);
        assert_eq!(seconds(Duration::from_millis(61_270)), "61.2 s");
    }
}
