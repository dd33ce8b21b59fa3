//! The command line of `cargo xtask`.

use std::str::FromStr;

use crate::demo;
use crate::test::Part;

/// The text for `--help`, and after a mistake.
pub(crate) const HELP: &str = "\
Usage: cargo xtask TASK

  setup                    install what a build needs: the target wasm32-wasip2, rustfmt, clippy and, if there is Node.js,
                           the console's npm packages
  test [--without PART]…   everything that CI runs; PART is one of
                           fmt, edges, dependencies, deny, web, guests, build, library, aarch64,
                           languages, syscalls, mounts, landlock, postgres, tests, demo, install, schemathesis, mcp, browser,
                           fuzz, clippy, docs
  demo [--answer] [--port N] [--without languages]
                           do what `build` does, start a host with the example plugins, submit a turn, kill the host,
                           restart it, and show what happens; --answer answers suspensions instead of a person
  build                    build the console, and the binary target/release/toolgate with it
  bench [NAME]… [--write] [--short]
                           run all benchmarks, or the named ones; --write puts the tables of `languages`, `durable-calls` and
                           `scale` into docs/performance.md; --short shows that `durable-calls` and `scale` work
  isolation [NAME]… [--write] [--export FOLDER]
                           run the hostile suite, or the named classes and cases of it, against the built host, and print
                           each outcome; --write puts the table into docs/isolation.md; --export writes the guests as
                           components for another host
  power-loss [CONTENTS] [SEED]
                           open this many possible contents of a disk after a loss of power (20000 if not given), from this
                           seed or a new one, and look for what the store had acknowledged
  sdk-docs [--check]       write the pages in docs/sdk, with every public name of the SDKs; --check compares them instead
  soak [--turns N] [--seed S]
                           run N turns (100000) of every kind against the built host with retention on, and check that its
                           memory, descriptors, threads and disk are flat after the first tenth
  kills [--rounds N] [--seed S]
                           kill the built host N times (2000) under load, with retention on, reloaded plugins and full
                           disks, and check after each time that nothing is lost and nothing ran twice
  kills --programs N [--seed S]
                           run N random programs of a durable call on a simulated host, kill it at each commit, and
                           compare results, journals, data and effects with those of runs without a kill
  kills --guests N [--seed S]
                           kill the built host N times while plugins of each language are in durable calls; `test`
                           installs the toolchains
  kills --hosts N [--seed S]
                           kill and pause three built hosts on one PostgreSQL database under load, end their connections and
                           crash the database, N times (`.ci/nightly`: 3000), and check that nothing is lost and nothing ran
                           twice";
/// The number of contents that `power-loss` opens.
const POWER_LOSSES: u32 = 20_000;

/// One task with its options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Setup,
    Build,
    Test { without: Vec<Part> },
    Demo(demo::Options),
    Bench { names: Vec<String> },
    Isolation { words: Vec<String> },
    PowerLoss { contents: u32, seed: Option<u64> },
    SdkDocs { check: bool },
    Soak { words: Vec<String> },
    Kills { words: Vec<String> },
}

impl Task {
    /// Reads the arguments after `cargo xtask`. The error is a sentence for the user.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut rest = arguments.iter().map(String::as_str);
        let task = match rest.next() {
            None | Some("help" | "--help" | "-h") => return Ok(Self::Help),
            Some("setup") => Self::Setup,
            Some("build") => Self::Build,
            Some("test") => return parts(rest).map(|without| Self::Test { without }),
            Some("demo") => return demo_options(rest).map(Self::Demo),
            Some("bench") => return Ok(Self::Bench { names: rest.map(str::to_owned).collect() }),
            Some("isolation") => return Ok(Self::Isolation { words: rest.map(str::to_owned).collect() }),
            Some("power-loss") => {
                let contents = rest.next().map_or(Ok(POWER_LOSSES), number)?;
                Self::PowerLoss { contents, seed: rest.next().map(number).transpose()? }
            }
            Some("sdk-docs") => Self::SdkDocs { check: only_check(rest.next())? },
            Some("soak") => return Ok(Self::Soak { words: rest.map(str::to_owned).collect() }),
            Some("kills") => return Ok(Self::Kills { words: rest.map(str::to_owned).collect() }),
            Some(other) => return Err(format!("there is no task {other:?}")),
        };
        match rest.next() {
            None => Ok(task),
            Some(surplus) => Err(format!("the argument {surplus:?} is not expected")),
        }
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number that fits"))
}

fn only_check(option: Option<&str>) -> Result<bool, String> {
    match option {
        None => Ok(false),
        Some("--check") => Ok(true),
        Some(other) => Err(format!("sdk-docs has no option {other:?}")),
    }
}

fn parts<'a>(mut rest: impl Iterator<Item = &'a str>) -> Result<Vec<Part>, String> {
    let mut without = Vec::new();
    while let Some(argument) = rest.next() {
        if argument != "--without" {
            return Err(format!("test has no option {argument:?}"));
        }
        let name = rest.next().ok_or("--without needs the name of a part")?;
        without.push(Part::named(name).ok_or_else(|| format!("test has no part {name:?}"))?);
    }
    Ok(without)
}

fn demo_options<'a>(mut rest: impl Iterator<Item = &'a str>) -> Result<demo::Options, String> {
    let mut options = demo::Options::default();
    while let Some(argument) = rest.next() {
        match argument {
            "--answer" => options.answer = true,
            "--without" => match rest.next() {
                Some("languages") => options.only_rust = true,
                _ => return Err("demo accepts only --without languages".into()),
            },
            "--port" => {
                let port = rest.next().ok_or("--port needs a number")?;
                options.port = port.parse().map_err(|_| format!("{port:?} is not a port"))?;
            }
            other => return Err(format!("demo has no option {other:?}")),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<Task, &str>) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(Task::parse(&arguments), expected.map_err(str::to_owned), "{line}");
    }

    #[test]
    fn command_lines_are_parsed() {
        check("", Ok(Task::Help));
        check("setup", Ok(Task::Setup));
        check("setup now", Err("the argument \"now\" is not expected"));
        check("test", Ok(Task::Test { without: vec![] }));
        check("test --without docs --without fmt", Ok(Task::Test { without: vec![Part::Docs, Part::Fmt] }));
        check("test --without", Err("--without needs the name of a part"));
        check("test --without doc", Err("test has no part \"doc\""));
        check("demo --answer --port 80", Ok(Task::Demo(demo::Options { answer: true, port: 80, only_rust: false })));
        let only_rust = demo::Options { only_rust: true, ..demo::Options::default() };
        check("demo --without languages", Ok(Task::Demo(only_rust)));
        check("demo --without web", Err("demo accepts only --without languages"));
        check("demo --port x", Err("\"x\" is not a port"));
        check("bench turns", Ok(Task::Bench { names: vec!["turns".into()] }));
        check("isolation cpu", Ok(Task::Isolation { words: vec!["cpu".into()] }));
        check("power-loss", Ok(Task::PowerLoss { contents: POWER_LOSSES, seed: None }));
        check("power-loss 5 7", Ok(Task::PowerLoss { contents: 5, seed: Some(7) }));
        check("power-loss many", Err("\"many\" is not a number that fits"));
        check("sdk-docs", Ok(Task::SdkDocs { check: false }));
        check("sdk-docs --check", Ok(Task::SdkDocs { check: true }));
        check("sdk-docs --chekc", Err("sdk-docs has no option \"--chekc\""));
        check("soak --turns 9", Ok(Task::Soak { words: vec!["--turns".into(), "9".into()] }));
        check("kills", Ok(Task::Kills { words: vec![] }));
        check("dance", Err("there is no task \"dance\""));
    }

    #[test]
    fn help_names_every_part() {
        for part in Part::ALL {
            assert!(HELP.contains(part.name()), "{}", part.name());
        }
    }
}
