//! Compiles `preload` to a library for Linux on 64-bit machines. On others, the library is an empty file.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "cargo speaks so with a build script")]
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=preload");
    let said = |name: &str| env::var(name).map_err(io::Error::other);
    let library = PathBuf::from(said("OUT_DIR")?).join("fixed.so");
    let (os, machine) = (said("CARGO_CFG_TARGET_OS")?, said("CARGO_CFG_TARGET_ARCH")?);
    if os != "linux" || !["x86_64", "aarch64"].contains(&machine.as_str()) {
        return fs::write(library, []);
    }
    let mut rustc = Command::new(said("RUSTC")?);
    rustc.args(["preload/fixed.rs", "--edition=2024", "--crate-type=cdylib", "--target", &said("TARGET")?]);
    rustc.args(["-Cpanic=abort", "-Copt-level=s", "-Cstrip=symbols", "-Ctarget-feature=-crt-static"]);
    // Without the C library, whose version it would name: it uses that of the program.
    rustc.args(["-Clink-arg=-nostdlib", "-o"]).arg(&library);
    if let Ok(linker) = said("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc.status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("rustc: {status}"))) }
}
