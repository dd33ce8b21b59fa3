//! Where the commands for authors keep what can be made again.

use std::path::PathBuf;

use clap::Args;

/// The user's cache.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cache")]
pub(crate) struct Cache {
    /// The folder for toolchains, and for compiled code, of which it keeps 2 GiB [default: toolgate in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, env = "TOOLGATE_CACHE", value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Cache {
    /// The folder, if there is one.
    pub(crate) fn folder(&self) -> Option<kit::Cache> {
        let folder = self.cache.clone().or_else(toolgate::config::user_cache)?;
        kit::Cache::at(&folder).ok()
    }

    /// Where compiled code is kept, if it is kept.
    pub(crate) fn compiled(&self) -> Option<PathBuf> {
        self.folder().map(|cache| cache.compiled())
    }
}
