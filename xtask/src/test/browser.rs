//! Playwright tests the console and `sdk/web` in Debian's Chromium, against the binary of the part `build`. The tests report a binary
//! or a component that is too old.

use anyhow::{Context as _, Result, bail};

use crate::workspace::{Invocation, binary, root};
use crate::{console, setup, web};

/// The path in the Debian package.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Runs the tests, one after the other.
pub(crate) fn run() -> Result<()> {
    web::must_be_set_up()
        .context("browser tests need Node.js and the npm packages; leave them out with `--without browser`")?;
    setup::debian_package("chromium", &format!("test -x {CHROMIUM}"), "browser")?;
    if !root().join("web/dist/index.html").is_file() {
        bail!("the console is not built; run the parts `web` and `build` too, or use `--without browser`");
    }
    let command = Invocation::new("npm run browser --workspace tests/browser")
        .variable("CHROMIUM", CHROMIUM)
        .variable("TOOLGATE_BINARY", binary("toolgate")?.display().to_string());
    console::aside(&format!("$ {command}"));
    command.run()
}
