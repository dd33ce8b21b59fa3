//! Everything that CI runs, step by step. The first failed step ends the run and shows the command that repeats it.

mod aarch64;
mod browser;
mod deny;
mod dependencies;
mod edges;
mod fuzz;
mod host;
mod install;
mod languages;
mod mcp;
mod schemathesis;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::build;
use crate::console::{self, Tone};
use crate::demo;
use crate::sdk_docs::{self, Sdk};
use crate::setup;
use crate::web;
use crate::workspace::{self, Invocation};

/// The other workspaces. They are compiled for guests, and natively for their tests.
const OTHERS: [&str; 3] = ["plugins", "sdk/rust", "tests/illegal"];

/// The disk space that a first run takes, in gigabytes.
const NEEDED_SPACE: u64 = 14;

/// A step. They run in this order, which puts quick failures first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Fmt,
    Edges,
    Dependencies,
    Deny,
    Web,
    Guests,
    Build,
    Library,
    Aarch64,
    Languages,
    Syscalls,
    Mounts,
    Landlock,
    Postgres,
    Tests,
    Demo,
    Install,
    Schemathesis,
    Mcp,
    Browser,
    Fuzz,
    Clippy,
    Docs,
}

impl Part {
    pub(crate) const ALL: [Self; 23] = [
        Self::Fmt,
        Self::Edges,
        Self::Dependencies,
        Self::Deny,
        Self::Web,
        Self::Guests,
        Self::Build,
        Self::Library,
        Self::Aarch64,
        Self::Languages,
        Self::Syscalls,
        Self::Mounts,
        Self::Landlock,
        Self::Postgres,
        Self::Tests,
        Self::Demo,
        Self::Install,
        Self::Schemathesis,
        Self::Mcp,
        Self::Browser,
        Self::Fuzz,
        Self::Clippy,
        Self::Docs,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fmt => "fmt",
            Self::Edges => "edges",
            Self::Dependencies => "dependencies",
            Self::Deny => "deny",
            Self::Web => "web",
            Self::Guests => "guests",
            Self::Build => "build",
            Self::Library => "library",
            Self::Aarch64 => "aarch64",
            Self::Languages => "languages",
            Self::Syscalls => "syscalls",
            Self::Mounts => "mounts",
            Self::Landlock => "landlock",
            Self::Postgres => "postgres",
            Self::Tests => "tests",
            Self::Demo => "demo",
            Self::Install => "install",
            Self::Schemathesis => "schemathesis",
            Self::Mcp => "mcp",
            Self::Browser => "browser",
            Self::Fuzz => "fuzz",
            Self::Clippy => "clippy",
            Self::Docs => "docs",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    const fn does(self) -> &'static str {
        match self {
            Self::Fmt => "every workspace is formatted",
            Self::Edges => "no crate depends on a crate that it must not know",
            Self::Dependencies => "the number of dependencies is within its limit",
            Self::Deny => "dependencies have allowed licences and sources, and no known vulnerability (cargo-deny)",
            Self::Web => "the console and sdk/web pass their checks, and the console is built (npm)",
            Self::Guests => {
                "plugins and illegal plugins build; plugins and SDK pass their native tests; the SDK's page is up to date"
            }
            Self::Build => "the host and its tests build",
            Self::Library => "the library alone compiles without the HTTP server",
            Self::Aarch64 => "code that differs between machines compiles for AArch64",
            Self::Languages => {
                "plugins in every language build, and the SDKs pass their native tests (from PyPI and npm)"
            }
            Self::Syscalls => "strace is installed, so that a test can see the writes to the disk",
            Self::Mounts => "this user may mount a small disk, so that a test can fill it",
            Self::Landlock => "the kernel has Landlock, so that a test can see what it denies",
            Self::Postgres => "the features of the four designs work on a private PostgreSQL server",
            Self::Tests => "the host's tests pass",
            Self::Demo => "the demo has the expected outcome, with the binary of the tests",
            Self::Install => "the README's `cargo install` installs toolgate",
            Self::Schemathesis => "a running host conforms to its own OpenAPI document",
            Self::Mcp => {
                "MCP clients of others work: the conformance suite, two official SDKs, the inspector (from npm and PyPI)"
            }
            Self::Browser => "the console and sdk/web work in a browser (Playwright)",
            Self::Fuzz => "a short run of each fuzz target finds no broken invariant (libFuzzer)",
            Self::Clippy => "no warning in any workspace",
            Self::Docs => "the documentation builds without a warning",
        }
    }

    /// Runs it, and returns the checks that were not possible.
    fn run(self, without: &[Self]) -> Result<Option<String>> {
        let commands: Vec<Invocation> = match self {
            Self::Edges => return edges::check().map(|()| None),
            Self::Aarch64 => return aarch64::check().map(|()| None),
            Self::Syscalls => return setup::strace().map(|()| None),
            Self::Mounts => return setup::mounts().map(|()| None),
            Self::Landlock => return setup::landlock().map(|()| None),
            Self::Demo => {
                let only_rust = without.contains(&Self::Languages);
                let options = demo::Options { answer: true, only_rust, ..demo::Options::default() };
                return demo::show(&options, &workspace::binary("toolgate")?).map(|()| None);
            }
            Self::Install => return install::run().map(|()| None),
            Self::Dependencies => return dependencies::check().map(|()| None),
            Self::Deny => return deny::check(),
            Self::Web => return web::check().map(|()| None),
            Self::Schemathesis => return schemathesis::run().map(|()| None),
            Self::Mcp => return mcp::run().map(|()| None),
            Self::Browser => return browser::run().map(|()| None),
            Self::Fuzz => return fuzz::run().map(|()| None),
            Self::Languages => return languages::run().map(|()| None),
            Self::Fmt => everywhere("cargo fmt --all --check"),
            Self::Guests => {
                let natively = |folder| Invocation::new("cargo test --locked --all-features").in_folder(folder);
                sdk_docs::check(&[Sdk::Rust])?;
                build::guest_commands().chain(["plugins", "sdk/rust"].map(natively)).collect()
            }
            // The tests too: they add features to dependencies, which a separate build would compile again.
            Self::Build => vec![Invocation::new("cargo build --locked --workspace --all-targets")],
            // Only this package is selected, so the features that other packages ask for stay off.
            // Checked and not run: code for another set of features would compile the engine a second time.
            Self::Library => vec![Invocation::new("cargo clippy --locked -p toolgate --all-targets -- -D warnings")],
            Self::Postgres => {
                setup::postgres()?;
                let seeds = Invocation::new("cargo test --locked --workspace --test seeds");
                vec![seeds.variable("TOOLGATE_TEST_STORE", "postgres")]
            }
            Self::Tests => {
                // Tests that need a part which was left out would fail. This variable tells them to skip.
                let needed = [Self::Web, Self::Syscalls, Self::Mounts, Self::Landlock, Self::Postgres, Self::Languages];
                let left_out: Vec<_> =
                    needed.into_iter().filter(|part| without.contains(part)).map(Self::name).collect();
                return host::run(&left_out.join(",")).map(|()| None);
            }
            Self::Clippy => everywhere("cargo clippy --locked --workspace --all-targets -- -D warnings"),
            Self::Docs => vec![
                Invocation::new("cargo doc --locked --workspace --no-deps").variable("RUSTDOCFLAGS", "-D warnings"),
                Invocation::new("cargo doc --locked --no-deps --all-features")
                    .in_folder("sdk/rust")
                    .variable("RUSTDOCFLAGS", "-D warnings"),
            ],
        };
        commands.iter().try_for_each(|command| {
            console::aside(&format!("$ {command}"));
            command.run()
        })?;
        Ok(None)
    }
}

fn everywhere(line: &str) -> Vec<Invocation> {
    let host = [Invocation::new(line)];
    host.into_iter().chain(OTHERS.map(|folder| Invocation::new(line).in_folder(folder))).collect()
}

/// Runs every part except these.
pub(crate) fn run(without: &[Part]) -> Result<()> {
    console::headline("setup");
    setup::toolchain()?;
    if let Some(free) = setup::free_space().filter(|free| *free < NEEDED_SPACE) {
        let needed = format!("a first run takes {NEEDED_SPACE} GB of disk, and {free} GB are free");
        console::line(&console::toned(Tone::Waiting, &needed));
    }
    let (mut took, mut unchecked) = (Vec::new(), Vec::new());
    for part in Part::ALL {
        if without.contains(&part) {
            continue;
        }
        console::headline(&format!("{}: {}", part.name(), part.does()));
        let begun = now();
        let passed = part.run(without);
        took.push((part, begun.elapsed()));
        unchecked.extend(passed.with_context(|| {
            table(&took, without, true);
            format!("the part `{}` failed", part.name())
        })?);
    }
    // Passed parts with checks that were not possible. The verdict is the last line.
    unchecked.iter().for_each(|what| console::line(&console::toned(Tone::Waiting, what)));
    table(&took, without, false);
    Ok(())
}

fn table(took: &[(Part, Duration)], without: &[Part], failed: bool) {
    console::headline("summary");
    for part in Part::ALL {
        let time = took.iter().find(|(done, _)| *done == part).map(|(_, time)| *time);
        let last = took.last().is_some_and(|(done, _)| *done == part);
        let (state, tone) = match time {
            Some(_) if failed && last => ("failed", Tone::Bad),
            Some(_) => ("passed", Tone::Good),
            None if without.contains(&part) => ("left out", Tone::Waiting),
            None => ("not run", Tone::Dim),
        };
        let time = time.map(console::duration).unwrap_or_default();
        console::line(&format!("{:<14} {} {time:>14}", part.name(), console::toned(tone, &format!("{state:<9}"))));
    }
    let total = console::duration(took.iter().map(|(_, time)| *time).sum());
    let names: Vec<&str> = without.iter().map(|part| part.name()).collect();
    let verdict = match (failed, names.is_empty()) {
        (true, _) => {
            let free = setup::free_space().map(|free| format!("; {free} GB of disk are free")).unwrap_or_default();
            format!("failed after {total}{free}")
        }
        (false, true) => format!("everything passed in {total}"),
        (false, false) => format!("passed in {total}, without {}, which CI runs too", names.join(", ")),
    };
    console::line(&verdict);
}

#[expect(clippy::disallowed_methods, reason = "the table says how long each part took")]
fn now() -> Instant {
    Instant::now()
}
