//! Writes what a component declares, and what it wants, into its section.

use std::io;

use domain::Digest;
use sandbox::{Capabilities, LoadError, Sandbox, section};

use crate::declaration::Declaration;
use crate::examine::declarations;
use crate::guests::Guests;
use crate::manifest::InvalidManifest;
use crate::{Manifest, Registry};

/// A component that carries its declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its tools' names, as they are declared.
    pub tools: Vec<String>,
}

/// Why a component cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is no component that a host could load, whatever it grants.
    #[error("the component cannot be loaded")]
    Component(#[source] LoadError),
    /// It does not say what its tools are.
    #[error("the component could not say what its tools are: {0}")]
    Catalog(String),
    /// The manifest says what no manifest may say.
    #[error("the manifest: {0}")]
    Manifest(#[from] InvalidManifest),
    /// There is too much to say.
    #[error("the declaration would have {0} bytes, at most {most} are taken", most = section::MAX_SECTION)]
    TooLarge(usize),
    /// The host failed, not the component.
    #[error("the host could not run it")]
    Host(#[from] io::Error),
}

impl Registry {
    /// Asks a component for its tools, in a sandbox without any grant, and writes what it says into its section, in the place
    /// of what may be there. Keeps its thread while it compiles.
    ///
    /// # Errors
    /// [`PackError`].
    pub fn pack(sandbox: &Sandbox, bytes: &[u8], manifest: Option<Manifest>) -> Result<Packed, PackError> {
        if let Some(manifest) = &manifest {
            manifest.check()?;
        }
        let loaded = Guests::load(sandbox, Digest::of(bytes), bytes, Capabilities::EVERY);
        let guest = loaded.map_err(|error| match error {
            LoadError::Host(source) => PackError::Host(io::Error::other(source)),
            error => PackError::Component(error),
        })?;
        let tools = declarations(guest.as_ref())?.map_err(|failure| PackError::Catalog(failure.message))?;
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        let content = Declaration { tools, wants: manifest }.write();
        if content.len() > section::MAX_SECTION {
            return Err(PackError::TooLarge(content.len()));
        }
        let bytes = section::with(bytes, &content).map_err(PackError::Component)?;
        Ok(Packed { bytes, tools: names })
    }
}
