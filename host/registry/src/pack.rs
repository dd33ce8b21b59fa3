//! Writes a component's declaration and manifest into its section.

use std::io;

use capabilities::Capabilities;
use domain::{CatalogLimits, Digest, PluginName};
use sandbox::{Declared, LoadError, Sandbox, section};

use crate::components::Known;
use crate::declaration::Declaration;
use crate::examine::{self, Candidate, declarations};
use crate::guests::ComponentLoader;
use crate::manifest::InvalidManifest;
use crate::{Access, CheckReport, Manifest, Registry, RegistrySettings};

/// A component with its declaration in a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    pub bytes: Vec<u8>,
    pub tools: Vec<String>,
}

/// Why a component cannot be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// No host could load the component, with any grants.
    #[error("the component cannot be loaded")]
    Component(#[source] LoadError),
    /// The component does not list its tools.
    #[error("the component did not list its tools: {0}")]
    Catalog(String),
    /// The manifest is invalid.
    #[error("the manifest: {0}")]
    Manifest(#[from] InvalidManifest),
    /// The declaration is too large.
    #[error("the declaration would have {size} bytes, at most {max} are allowed (limit `catalog.declaration_bytes`)")]
    TooLarge { size: usize, max: usize },
    /// The host failed, not the component.
    #[error("the host could not run the component")]
    Host(#[from] io::Error),
}

impl Registry {
    /// Asks a component for its tools, in a sandbox without grants, and writes the answer into its section. An existing
    /// section is replaced. Blocks its thread while it compiles.
    ///
    /// # Errors
    /// [`PackError`].
    pub fn pack(
        engine: &Sandbox,
        limits: &CatalogLimits,
        bytes: &[u8],
        manifest: Option<Manifest>,
    ) -> Result<Packed, PackError> {
        Self::packed(engine, limits, bytes, manifest).map(|(packed, ..)| packed)
    }

    /// Packs a component as [`Registry::pack`] does and checks the result as [`Registry::check`] does, with one
    /// compilation for both.
    ///
    /// # Errors
    /// [`PackError`].
    pub fn pack_and_check(
        engine: &Sandbox,
        settings: &RegistrySettings,
        name: &PluginName,
        bytes: &[u8],
        manifest: Option<Manifest>,
    ) -> Result<(Packed, CheckReport), PackError> {
        let requested = manifest.clone();
        let (packed, has_server, declared) = Self::packed(engine, &settings.catalog, bytes, manifest)?;
        let (component, bytes) = (Digest::of(&packed.bytes), packed.bytes.as_slice());
        let access = Access::of(settings, name, component, requested.clone());
        // Packing has just asked the same code, so it need not be asked again, although its digest changed.
        let known = Known {
            plugin: name.clone(),
            capabilities: access.effective.capabilities(),
            has_server,
            declared,
            manifest: requested,
            current: true,
        };
        let candidate = Candidate { settings, plugin: name, component, bytes, owner: &|_| None };
        let examined = examine::examine(engine, &candidate, Some(known))?;
        let report = CheckReport::new(&candidate, examined);
        Ok((packed, report))
    }

    /// Also returns whether the component exports `server`, and its answer.
    fn packed(
        engine: &Sandbox,
        limits: &CatalogLimits,
        bytes: &[u8],
        manifest: Option<Manifest>,
    ) -> Result<(Packed, bool, Vec<Declared>), PackError> {
        if let Some(manifest) = &manifest {
            manifest.check()?;
        }
        let loaded = ComponentLoader::load(engine, Digest::of(bytes), bytes, Capabilities::EVERY);
        let guest = loaded.map_err(|error| match error {
            LoadError::Host(source) => PackError::Host(io::Error::other(source)),
            error => PackError::Component(error),
        })?;
        let tools = declarations(guest.as_ref(), limits)?.map_err(|failure| PackError::Catalog(failure.message))?;
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        let content = Declaration { tools: tools.clone(), manifest }.write();
        let (size, max) = (content.len(), limits.declaration);
        if size > max {
            return Err(PackError::TooLarge { size, max });
        }
        let bytes = section::with(bytes, &content).map_err(PackError::Component)?;
        Ok((Packed { bytes, tools: names }, guest.has_server(), tools))
    }
}
