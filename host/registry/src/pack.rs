//! Writes what a component declares, and what it wants, into its section.

use std::io;

use capabilities::Capabilities;
use domain::{Digest, PluginName};
use sandbox::{Declared, LoadError, Sandbox, section};

use crate::components::Known;
use crate::declaration::Declaration;
use crate::examine::{self, Question, declarations};
use crate::guests::Guests;
use crate::manifest::InvalidManifest;
use crate::{Access, CheckReport, Manifest, Registry, Settings};

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
        Self::packed(sandbox, bytes, manifest).map(|(packed, _)| packed)
    }

    /// Packs a component as [`Registry::pack`] does, and judges what comes of it as [`Registry::check`] does, with one compilation
    /// for both.
    ///
    /// # Errors
    /// [`PackError`].
    pub fn pack_and_check(
        sandbox: &Sandbox,
        settings: &Settings,
        name: &PluginName,
        bytes: &[u8],
        manifest: Option<Manifest>,
    ) -> Result<(Packed, CheckReport), PackError> {
        let wants = manifest.clone();
        let (packed, guest) = Self::packed(sandbox, bytes, manifest)?;
        let (component, bytes) = (Digest::of(&packed.bytes), packed.bytes.as_slice());
        let access = Access::of(settings, name, component, wants.clone());
        // What was asked a moment ago and written down: the same code, whichever name its bytes have now.
        let known = Known {
            plugin: name.clone(),
            capabilities: access.effective.capabilities(),
            has_server: guest.has_server,
            declared: guest.declared,
            wants,
            current: true,
        };
        let question = Question { settings, plugin: name, component, bytes, owner: &|_| None };
        let examined = examine::examine(sandbox, &question, Some(known))?;
        let report = CheckReport {
            component,
            tools: examined.tools,
            built_against: examined.built_against,
            findings: examined.findings,
            access: examined.access,
            is_packed: examined.is_packed,
        };
        Ok((packed, report))
    }

    fn packed(sandbox: &Sandbox, bytes: &[u8], manifest: Option<Manifest>) -> Result<(Packed, Asked), PackError> {
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
        let asked = Asked { has_server: guest.has_server(), declared: tools.clone() };
        let content = Declaration { tools, wants: manifest }.write();
        if content.len() > section::MAX_SECTION {
            return Err(PackError::TooLarge(content.len()));
        }
        let bytes = section::with(bytes, &content).map_err(PackError::Component)?;
        Ok((Packed { bytes, tools: names }, asked))
    }
}

/// What a component was asked while it was packed.
struct Asked {
    has_server: bool,
    declared: Vec<Declared>,
}
