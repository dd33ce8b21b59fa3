//! Python: componentize-py puts CPython, the SDK and the author's modules into one component.

use super::{Made, read};
use crate::{Failed, Kit, Project, toolchain, world};

pub(super) fn build(kit: &Kit<'_>, project: &Project) -> Result<Made, Failed> {
    // componentize-py imports whatever the world names.
    let wit = world::write(project, project.wants())?;
    let sdk = project.sdk()?;
    let installed = toolchain::PYTHON.installed(kit)?;
    let tool = || installed.python("componentize_py:script").in_folder(project.folder());
    let version = tool().of_the_machine().arg("--version").run("asking componentize-py for its version")?;
    (kit.say)(&format!("building {} with {}", project.name(), version.trim()));
    let made = project.output().join("component.wasm");
    tool()
        .arg("--wit-path")
        .arg(&wit)
        .args(["--world", world::WORLD, "componentize", "toolgate.app", "--python-path"])
        .arg(project.folder())
        .arg("--python-path")
        .arg(sdk.join("src"))
        .arg("--output")
        .arg(&made)
        .run("building the component")?;
    Ok(Made { component: read(&made)?, tools: vec![version.trim().to_owned()] })
}
