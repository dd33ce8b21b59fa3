//! MCP clients that are not ours, against the binary of the part `build`: the public conformance suite, the official SDKs and the
//! inspector. `tests/mcp` has the tests.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::console;
use crate::tools::Tool;
use crate::web;
use crate::workspace::{Invocation, binary, root};

const FOLDER: &str = "tests/mcp";

/// Python's SDK. `tests/mcp/tests/python.test.ts` runs it.
const PYTHON: Tool = Tool { name: "mcp", program: "python", requirements: "tests/mcp/requirements.txt", part: "mcp" };

/// Runs the tests.
pub(crate) fn run() -> Result<()> {
    let python = PYTHON.installed()?;
    packages()?;
    let check = Invocation::new("npm run typecheck").in_folder(FOLDER);
    // The clients need a newer Node.js than the console, so npm installs one.
    let tests = Invocation::new("node --test")
        .program(&node())
        .in_folder(FOLDER)
        .words("--test-concurrency 3 --test-timeout 240000 --test-reporter spec tests/*.test.ts")
        .variable("PYTHON", python.display().to_string())
        .variable("TOOLGATE_BINARY", binary("toolgate")?.display().to_string());
    for command in [check, tests] {
        console::aside(&format!("$ {command}"));
        command.run()?;
    }
    Ok(())
}

/// The Node.js among the packages, or the machine's.
fn node() -> PathBuf {
    let of_machine = |machine| root().join(FOLDER).join(format!("node_modules/node-linux-{machine}/bin/node"));
    ["x64", "arm64"].map(of_machine).into_iter().find(|node| node.is_file()).unwrap_or_else(|| "node".into())
}

/// Installs the packages in the versions of the lock file, if it has changed.
fn packages() -> Result<()> {
    web::node().context("MCP clients need Node.js; leave them out with `--without mcp`")?;
    let lock = root().join(FOLDER).join("package-lock.json");
    let wanted = fs::read_to_string(&lock).with_context(|| format!("could not read {}", lock.display()))?;
    let stamp = root().join(FOLDER).join("node_modules/.installed");
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        console::aside("the npm packages of tests/mcp are installed");
        return Ok(());
    }
    console::line("installing the npm packages of tests/mcp/package-lock.json");
    Invocation::new("npm ci --no-audit --no-fund --ignore-scripts --loglevel error")
        .in_folder(FOLDER)
        .run()
        .context("could not install the npm packages; without a network leave this out with `--without mcp`")?;
    fs::write(&stamp, wanted).with_context(|| format!("could not write {}", stamp.display()))
}
