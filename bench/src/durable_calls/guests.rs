//! The plugin of this benchmark in each language. `toolgate build` builds it, as it does for authors, with the installed toolchains.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::authors::LANGUAGES;
use crate::setting::repository;

/// A language: its name, how `--lang` spells it, and the file of its tool.
pub(super) type Language = (&'static str, &'static str, &'static str);

pub(super) const RUST: Language = LANGUAGES[0];

/// The name of the plugin. Go does not compile a package with the name of the tool.
pub(super) const PLUGIN: &str = "worker";

/// The name of its tool.
pub(super) const TOOL: &str = "work";

/// Builds the component. In Rust, it sends requests to this server.
pub(super) fn build((_, language, source): Language, server: SocketAddr) -> Result<Vec<u8>> {
    let mut manifest = "[wants.keyvalue]\nwhy = \"reads a key\"\n".to_owned();
    let folder = tempfile::tempdir()?;
    toolgate(folder.path(), &["new", PLUGIN, "--lang", language, "--durable"])?;
    let plugin = folder.path().join(PLUGIN);
    let file = Path::new(source).file_name().context("a source is a file")?;
    fs::copy(repository().join("bench/guests").join(file), plugin.join(source))?;
    fs::write(plugin.join("examples.json"), "[]")?;
    if language == RUST.1 {
        // With the versions of the example plugins, cargo needs no registry.
        fs::copy(repository().join("plugins/Cargo.lock"), plugin.join("Cargo.lock"))?;
        let package = plugin.join("Cargo.toml");
        let text = fs::read_to_string(&package)?;
        let features = "toolgate-sdk = { features = [\"http\", \"keyvalue\"], ";
        fs::write(package, text.replace("toolgate-sdk = { ", features))?;
        let request = format!("url = \"http://{server}/\"\nmethods = [\"POST\"]\nwhy = \"sends requests\"\n");
        manifest.push_str(&format!("\n[[wants.http]]\n{request}"));
    }
    fs::write(plugin.join("toolgate-plugin.toml"), manifest)?;
    toolgate(folder.path(), &["build", PLUGIN])?;
    Ok(fs::read(plugin.join("build").join(format!("{PLUGIN}.wasm")))?)
}

/// Runs a command in this folder.
fn toolgate(folder: &Path, words: &[&str]) -> Result<()> {
    let binary = std::env::current_exe()?.with_file_name("toolgate");
    ensure!(binary.is_file(), "the binary is missing: cargo build --release -p toolgate-cli");
    let mut command = Command::new(binary);
    command
        .args(words)
        .current_dir(folder)
        .env("TOOLGATE_CACHE", repository().canonicalize()?.join("target/toolchains"));
    // Kept between runs, so that dependencies are compiled once.
    command.env("CARGO_TARGET_DIR", repository().canonicalize()?.join("plugins/target/new"));
    let output = command.stdin(Stdio::null()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "toolgate {}: {errors}", words.join(" "));
    Ok(())
}
