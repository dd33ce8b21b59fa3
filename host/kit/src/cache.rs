//! Where toolchains are kept, and everything that they would otherwise put into the user's home.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Failed;

/// A folder of ours alone. It can be deleted at any time: the next build fetches what it needs.
#[derive(Debug, Clone)]
pub struct Cache(PathBuf);

impl Cache {
    /// The cache in this folder, which is made when something is put into it.
    ///
    /// # Errors
    /// When the current folder is needed to say where that is, and cannot be told.
    pub fn at(folder: &Path) -> io::Result<Self> {
        std::path::absolute(folder).map(Self)
    }

    /// Where it is, from the root.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Where code is that was compiled from components. Nothing of it is written here.
    #[must_use]
    pub fn compiled(&self) -> PathBuf {
        self.0.join("compiled")
    }

    /// Where the toolchains are.
    pub(crate) fn toolchains(&self) -> Result<PathBuf, Failed> {
        self.made("toolchains")
    }

    /// A folder in which a tool may keep what it fetched or built, so that it does so here and not in the user's home.
    pub(crate) fn of_tool(&self, name: &str) -> Result<PathBuf, Failed> {
        self.made(&format!("tools/{name}"))
    }

    fn made(&self, name: &str) -> Result<PathBuf, Failed> {
        let folder = self.0.join(name);
        fs::create_dir_all(&folder).map_err(Failed::writing(&folder))?;
        Ok(folder)
    }
}
