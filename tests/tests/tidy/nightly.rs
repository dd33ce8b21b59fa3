//! `.ci/nightly`, with a program in place of cargo.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

use super::{read, root};

/// Says how it was called, and reads its standard input to the end, as programs of a build may.
const CARGO: &str = "#!/bin/sh
echo \"cargo $* ${TOOLGATE_EMPTY_HOME:+in an empty home}\" >> \"$(dirname \"$0\")/ran\"
cat > /dev/null
";

/// Runs a copy of the script, of the README and of nothing else. Returns the commands that it ran.
fn run(cargo: &str) -> (Output, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        fs::write(folder.path().join(path), text).unwrap();
        fs::set_permissions(folder.path().join(path), fs::Permissions::from_mode(0o755)).unwrap();
    };
    fs::create_dir(folder.path().join(".ci")).unwrap();
    write("README.md", &read("README.md"));
    write(".ci/nightly", &read(".ci/nightly"));
    write("cargo", cargo);
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.path().display());
    let mut script = Command::new(folder.path().join(".ci/nightly"));
    let output = script.env("PATH", path).stdin(Stdio::null()).output().unwrap();
    let ran = fs::read_to_string(folder.path().join("ran")).unwrap();
    (output, ran.lines().map(|line| line.trim_end().to_owned()).collect())
}

#[test]
fn nightly_runs_each_command() {
    let (output, ran) = run(CARGO);
    assert!(output.status.success(), "{output:?}");
    let builds = [
        "cargo xtask build",
        "cargo install --path host/cli --locked",
        "cargo xtask demo --answer",
        "cargo build --locked --workspace --bins --test author_docs",
        "cargo test --locked --workspace --test author_docs -- --exact c go javascript python rust typescript in an empty home",
    ];
    let pages = read("tests/tests/author_docs.rs");
    for page in ["c", "go", "javascript", "python", "rust", "typescript"] {
        assert!(pages.contains(&format!("\n    {page}: \"{page}.md\",\n")), "the test {page} exists");
    }
    let long = [
        "cargo xtask soak",
        "cargo xtask kills",
        "cargo xtask kills --programs 4000",
        "cargo xtask kills --guests 600",
        "cargo xtask kills --hosts 3000",
        "cargo xtask power-loss",
        "cargo xtask isolation",
    ];
    assert_eq!(ran, [&builds[..], &long].concat());
    let (readme, guide) = (read("README.md"), read("CONTRIBUTING.md"));
    for command in ["cargo xtask build", "cargo install --path host/cli --locked", "cargo xtask demo"] {
        assert!(readme.contains(&format!("\n{command} ")), "README.md names {command}");
    }
    for command in long.into_iter().chain([".ci/nightly"]) {
        assert!(guide.contains(&format!("`{command}`")), "CONTRIBUTING.md names {command}");
    }
    assert!(root().join("tests/tests/author_docs.rs").is_file());
}

#[test]
fn nightly_ends_with_the_first_failure() {
    let (output, ran) = run(&format!("{CARGO}test \"$1\" != install\n"));
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(ran.len(), 2, "{ran:?}");
}

#[test]
fn nightly_refuses_a_second_build_of_the_engine() {
    let (output, ran) = run(&format!("{CARGO}echo '   Compiling wasmtime v1.0.0'\n"));
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(ran.len(), 3, "{ran:?}");
}
