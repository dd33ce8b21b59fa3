//! `new`: a plugin to start from. The folder stands alone: it carries the SDK and the interface beside its own code.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::args::New;
use crate::report::{Exit, Report};
use crate::terminal::{Ink, Terminal};

/// The repository's files that make up a skeleton, by their path in it.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/skeleton.rs"));

/// Where the template is among them.
const TEMPLATE: &str = "sdk/rust/template/";

/// Where the skeleton keeps what is not the author's.
const OURS: &str = "toolgate";

pub(super) fn run(args: &New, terminal: &Terminal) -> Result<(), Report> {
    check(&args.name)?;
    let folder = args.dir.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    if folder.exists() {
        return Err(Report::new(Exit::Refused, format!("{} exists already", folder.display()))
            .hint("choose another name, or another folder with --dir"));
    }
    for (path, content) in FILES {
        let (path, content) = match path.strip_prefix(TEMPLATE) {
            Some(path) => (PathBuf::from(path.strip_suffix(".tmpl").unwrap_or(path)), fill(content, &args.name)),
            None => (Path::new(OURS).join(path), (*content).to_owned()),
        };
        write(&folder.join(path), &content)?;
    }
    let shown = folder.display();
    let file = format!("target/wasm32-wasip2/release/{}.wasm", args.name.replace('-', "_"));
    terminal.line(format!("{} {shown}", terminal.ink(Ink::Good, "wrote")))?;
    terminal.line(format!(
        "\n  cd {shown}\n  cargo test\n  rustup target add wasm32-wasip2\n  cargo build --release --target wasm32-wasip2\n  \
         toolgate check {file}"
    ))?;
    Ok(())
}

/// A name that is one of a package, of a crate, and of a tool.
fn check(name: &str) -> Result<(), Report> {
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
    let rest = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
    // The template's tool is called NAME_count, and the name of a tool has at most 64 characters.
    if begins
        && rest
        && name.len() <= 50
        && !["test", "toolgate", "toolgate-sdk", "core", "std", "alloc"].contains(&name)
    {
        return Ok(());
    }
    Err(Report::new(Exit::Usage, format!("{name:?} cannot be the name of a plugin"))
        .hint("a name has 1 to 50 of the characters a-z 0-9 _ - and begins with a letter"))
}

fn fill(template: &str, name: &str) -> String {
    template.replace("{{name}}", name).replace("{{sdk}}", "toolgate/sdk/rust")
}

fn write(path: &Path, content: &str) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(failed)?;
    }
    std::fs::write(path, content).with_context(failed)
}
