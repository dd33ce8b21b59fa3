//! The console and `sdk/web` in Debian's Chromium, driven by Playwright, against the binary of the part `build`. What the tests
//! find too old, the binary or a component, they name themselves.

use anyhow::{Context as _, Result, bail};

use crate::workspace::{Invocation, binary, root};
use crate::{console, setup, web};

/// Where the Debian package puts it.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Runs the tests, one after the other.
pub(crate) fn run() -> Result<()> {
    web::must_be_set_up().context(
        "without Node.js and the npm packages there are no browser tests; leave them out with `--without browser`",
    )?;
    setup::debian_package("chromium", &format!("test -x {CHROMIUM}"), "browser")?;
    if !root().join("web/dist/index.html").is_file() {
        bail!(
            "the console is not built: run the parts `web` and `build`, too, or leave this one out with `--without browser`"
        );
    }
    let command = Invocation::new("npm run browser --workspace tests/browser")
        .variable("CHROMIUM", CHROMIUM)
        .variable("TOOLGATE_BINARY", binary("toolgate")?.display().to_string());
    console::aside(&format!("$ {command}"));
    command.run()
}
