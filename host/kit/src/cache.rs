//! The folder of the toolchains, and of everything that they would otherwise put into the user's home.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Failed;

/// A folder of toolgate's own. Users can delete it at any time: the next build fetches what it needs.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// The cache in this folder. The first write creates the folder.
    ///
    /// # Errors
    /// When the path is relative and the current folder is unknown.
    pub fn at(folder: &Path) -> io::Result<Self> {
        std::path::absolute(folder).map(Self)
    }

    /// Its absolute path.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The folder of code that was compiled from components. The kit writes nothing there.
    #[must_use]
    pub fn compiled(&self) -> PathBuf {
        self.0.join("compiled")
    }

    pub(crate) fn toolchains(&self) -> Result<PathBuf, Failed> {
        self.made("toolchains")
    }

    /// A folder for the files that a tool fetches or builds, instead of one in the user's home.
    pub(crate) fn of_tool(&self, name: &str) -> Result<PathBuf, Failed> {
        self.made(&format!("tools/{name}"))
    }

    fn made(&self, name: &str) -> Result<PathBuf, Failed> {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder).map_err(Failed::writing(&folder))?;
        Ok(folder)
    }
}
