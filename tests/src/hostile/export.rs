//! Exports the guests as components with a list of their expected outcomes, for the maintainers of other hosts.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{CLASSES, cases, run};

/// Writes every guest of the suite as `CLASS-NAME.wasm`, and `cases.json` with a row for each.
///
/// # Errors
/// When a file cannot be written, or a case is invalid.
pub fn export(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mut rows = Vec::new();
    for class in &CLASSES {
        for case in cases(class)? {
            // Requests to this host are not guests.
            let Some(component) = run::component(&case.attack, &case.tool_name())? else { continue };
            let file = format!("{}.wasm", case.plugin_name());
            fs::write(folder.join(&file), component).with_context(|| file.clone())?;
            rows.push(json!({
                "file": file,
                "class": class.name,
                "attack": case.says,
                "tool": case.tool_name(),
                "arguments": case.arguments,
                "at_once": case.at_once,
                "expected": case.expected.words(),
                "says": case.holds,
                "settings": case.plugin,
                "memory_mib": case.memory_mib,
            }));
        }
    }
    fs::write(folder.join("cases.json"), serde_json::to_string_pretty(&rows)?)?;
    Ok(())
}
