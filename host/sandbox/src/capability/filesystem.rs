//! `wasi:filesystem` (0.2): folders of the host that the operator opens to a plugin.

use std::path::PathBuf;

/// A folder that a plugin may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where it is on the host.
    pub path: PathBuf,
    /// Under which path the guest sees it, such as `/data`.
    pub at: String,
    /// Whether the guest may change what is in it.
    pub write: bool,
}
