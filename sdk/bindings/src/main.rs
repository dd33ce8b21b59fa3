//! Writes the bindings of `sdk/go` and `sdk/c` from `wit/`: `cargo run`, here. `cargo run -- --check` writes nothing and says
//! whether the committed files are what it would write.
//!
//! One world holds everything that a plugin may import. Compilers drop what is not called, and wit-component drops the
//! imports that are left unused, so a component still imports what its tools use and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use wit_bindgen_core::{Files, WorldGenerator};
use wit_parser::{Resolve, WorldId};

/// What is elsewhere in this repository: the runtime module of the Go bindings, and the functions that the exports call.
const GO_MOVED: [(&str, &str); 2] = [
    ("go.bytecodealliance.org/pkg/wit/", "toolgate/internal/wit/"),
    ("toolgate/internal/bindings/exports/export_", "toolgate/internal/exports/export_"),
];

/// Where in the Go SDK the bindings are.
const GO_PACKAGE: &str = "toolgate/internal/bindings";

type Written = BTreeMap<PathBuf, Vec<u8>>;

fn main() -> Result<ExitCode> {
    let check = std::env::args().skip(1).any(|argument| argument == "--check");
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the folder of the SDKs")?;
    let wit = sdk.join("../wit/v0.1");
    let mut stale = false;
    for (folder, files) in [(sdk.join("go/internal/bindings"), go(&wit)?), (sdk.join("c/bindings"), c(&wit)?)] {
        if check {
            stale |= differs(&folder, &files)?;
        } else {
            write(&folder, &files)?;
        }
    }
    if stale {
        eprintln!("write them again: cargo run --manifest-path sdk/bindings/Cargo.toml");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn world(wit: &Path) -> Result<(Resolve, WorldId)> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).with_context(|| format!("cannot read {}", wit.display()))?;
    let name = resolve.packages[package].name.clone();
    let version = name.version.context("the interface has a version")?;
    let text = format!(
        "package toolgate:build;
         world tools {{
           include toolgate:plugin/plugin@{version};
           import wasi:config/store@0.2.0-rc.1;
           import wasi:keyvalue/store@0.2.0-draft2;
           import wasi:keyvalue/atomics@0.2.0-draft2;
           import wasi:http/types@0.2.12;
           import wasi:http/outgoing-handler@0.2.12;
         }}"
    );
    let package = resolve.push_str("tools.wit", &text)?;
    let world = resolve.select_world(&[package], Some("tools"))?;
    Ok((resolve, world))
}

fn generate(wit: &Path, mut generator: Box<dyn WorldGenerator>) -> Result<Files> {
    let (mut resolve, world) = world(wit)?;
    let mut files = Files::default();
    generator.generate(&mut resolve, world, &mut files)?;
    Ok(files)
}

fn c(wit: &Path) -> Result<Written> {
    // The type of the component is embedded by `toolgate build`; an object file would have to be one of this compiler.
    let options = wit_bindgen_c::Opts { no_object_file: true, ..Default::default() };
    let files = generate(wit, options.build())?;
    Ok(files.iter().map(|(path, content)| (path.into(), tidied(&String::from_utf8_lossy(content)))).collect())
}

fn go(wit: &Path) -> Result<Written> {
    let options = wit_bindgen_go::Opts {
        // Whether gofmt is installed must not decide what is written.
        format: wit_bindgen_go::Format::False,
        pkg_name: Some(GO_PACKAGE.to_owned()),
        ..Default::default()
    };
    let files = generate(wit, options.build())?;
    let ours = |content: &[u8]| {
        let mut content = String::from_utf8_lossy(content).into_owned();
        for (theirs, ours) in GO_MOVED {
            content = content.replace(theirs, ours);
        }
        // The bindings are for the component alone: natively there is nothing that could be imported.
        let tag = if content.contains("\npackage ") { "//go:build wasip1\n\n" } else { "" };
        tidied(&format!("{tag}{content}"))
    };
    Ok(files.iter().map(|(path, content)| (path.into(), ours(content))).collect())
}

/// Without white space at the ends of lines, and with one line's end at the end.
fn tidied(content: &str) -> Vec<u8> {
    let lines: Vec<_> = content.trim_end().lines().map(str::trim_end).collect();
    (lines.join("\n") + "\n").into_bytes()
}

fn write(folder: &Path, files: &Written) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    for (path, content) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        std::fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn differs(folder: &Path, files: &Written) -> Result<bool> {
    let mut found = BTreeSet::new();
    list(folder, &mut found)?;
    let expected: BTreeSet<_> = files.keys().map(|path| folder.join(path)).collect();
    let mut differs = false;
    for path in found.symmetric_difference(&expected) {
        eprintln!(
            "{}: {}",
            path.display(),
            if found.contains(path) { "is not written any more" } else { "is missing" }
        );
        differs = true;
    }
    for (path, content) in files {
        let path = folder.join(path);
        if found.contains(&path) && std::fs::read(&path)? != *content {
            eprintln!("{}: is not what wit/ makes of it", path.display());
            differs = true;
        }
    }
    Ok(differs)
}

fn list(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}
