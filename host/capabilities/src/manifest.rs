//! The manifest: what a plugin requests, and why. It grants nothing.
//!
//! An author writes it beside the source as `toolgate-plugin.toml`, and packing stores it in the component's section. A
//! plugin with a manifest gets what is both granted and requested. A plugin without one gets all that is granted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::grants::{Capability, Grants};
use crate::list::listed;
pub use crate::request::InvalidManifest;
use crate::request::{GrantRequest, MAX_REQUESTS, MAX_WHY};

domain::names! {
    /// How much of a request is granted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum GrantState {
        Granted = "granted",
        InPart = "in part",
        Missing = "missing",
        /// No grant can give it.
        Impossible = "impossible",
    }
}

impl GrantState {
    fn of<R: GrantRequest>(request: &R, granted: &R::Granted) -> Self {
        if request.refusal().is_some() {
            return Self::Impossible;
        }
        if request.is_covered(granted) {
            return Self::Granted;
        }
        let both = R::intersection(granted, std::slice::from_ref(request));
        if R::each(&both, |_| String::new()).is_empty() { Self::Missing } else { Self::InPart }
    }
}

/// One request of a component's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedGrant {
    /// The request, in the host's words.
    pub what: String,
    /// The reason, in the plugin's words. Escape it before you show it.
    pub why: String,
    /// How much of it is granted.
    pub state: GrantState,
    /// Why no grant can give it. `None` if one can.
    pub refusal: Option<String>,
}

macro_rules! manifest {
    ($(#[doc = $doc:literal] $key:ident: $folder:ident::$request:ident of $capability:ident
        $(, linked by $linked:ident)?;)*) => {
        /// The requests of a plugin.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Manifest {
            $(#[doc = $doc]
            #[serde(skip_serializing_if = "crate::request::is_default")]
            pub $key: <crate::$folder::$request as GrantRequest>::All,)*
        }

        impl Manifest {
            /// Checks the manifest.
            ///
            /// # Errors
            /// The first fault.
            pub fn check(&self) -> Result<(), InvalidManifest> {
                $(if self.$key.as_slice().len() > MAX_REQUESTS {
                    return Err(InvalidManifest::TooMany(stringify!($key)));
                })*
                let mut names = BTreeSet::new();
                $(for request in self.$key.as_slice() {
                    check(request, &request.why, &mut names)?;
                })*
                Ok(())
            }

            /// Whether it requests anything of this capability.
            #[must_use]
            pub fn requests_any(&self, capability: Capability) -> bool {
                let requested = [$((Capability::$capability, !self.$key.as_slice().is_empty()),)*];
                requested.contains(&(capability, true))
            }

            /// Every request, and how much of it these grants give.
            #[must_use]
            pub fn requests(&self, granted: &Grants) -> Vec<RequestedGrant> {
                let mut all = Vec::new();
                $(all.extend(self.$key.iter().map(|request| RequestedGrant {
                    what: request.words(),
                    why: request.why.clone(),
                    state: GrantState::of(request, &granted.$key),
                    refusal: request.refusal(),
                }));)*
                all
            }

            /// The lines of `[plugin.NAME]` in `toolgate.toml` that grant the requests of a manifest for a capability.
            /// Values that only the operator knows are placeholders.
            #[must_use]
            pub fn lines(manifest: Option<&Self>, capability: Capability) -> Vec<String> {
                let mut lines = Vec::new();
                $(if capability == Capability::$capability {
                    lines.extend(match manifest {
                        Some(manifest) => crate::$folder::$request::lines(manifest.$key.as_slice()),
                        None => crate::$folder::$request::EXAMPLE.map(str::to_owned).into_iter().collect(),
                    });
                })*
                lines
            }

            /// Grants for a trial run in which nothing leaves the process: all that the manifest requests, or common
            /// grants without a manifest. Values and secrets are invented, and no folder is opened.
            #[must_use]
            pub fn made_up(manifest: Option<&Self>) -> Grants {
                let grants = Grants {
                    $($key: crate::$folder::$request::made_up(manifest.map(|manifest| manifest.$key.as_slice())),)*
                };
                if let Some(manifest) = manifest { manifest.intersection(&grants) } else { grants }
            }

            /// The intersection of the grants and the requests.
            #[must_use]
            pub fn intersection(&self, granted: &Grants) -> Grants {
                Grants { $($key: crate::$folder::$request::intersection(&granted.$key, self.$key.as_slice()),)* }
            }
        }
    };
}

listed!(manifest);

fn check<R: GrantRequest>(request: &R, why: &str, names: &mut BTreeSet<String>) -> Result<(), InvalidManifest> {
    if why.trim().is_empty() {
        return Err(InvalidManifest::NoWhy(request.words()));
    }
    if why.chars().count() > MAX_WHY {
        return Err(InvalidManifest::LongWhy(request.words()));
    }
    match request.name().and_then(|name| names.replace(name)) {
        Some(name) => Err(InvalidManifest::Twice(name)),
        None => request.check(),
    }
}
