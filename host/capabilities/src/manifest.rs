//! The manifest: what a plugin requests, and why. It grants nothing.
//!
//! An author writes it beside the source as `toolgate-plugin.toml`, and packing stores it in the component's section. A
//! plugin with a manifest gets what is both granted and requested. A plugin without one gets all that is granted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::grants::{Capability, Grants};
use crate::list::listed;
pub use crate::request::InvalidManifest;
use crate::request::{All, MAX_REQUESTS, MAX_WHY, Request};

/// One request of a manifest.
pub struct SingleRequest<'a> {
    /// The request, in the host's words.
    pub words: String,
    /// The reason, in the plugin's words.
    pub why: &'a str,
    /// A manifest with this request only.
    pub alone: Manifest,
}

macro_rules! manifest {
    ($(#[doc = $doc:literal] $key:ident: $folder:ident::$request:ident of $capability:ident
        $(, linked by $linked:ident)?;)*) => {
        /// What a plugin requests.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Manifest {
            $(#[doc = $doc]
            #[serde(skip_serializing_if = "crate::request::is_default")]
            pub $key: <crate::$folder::$request as Request>::All,)*
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
                for request in self.requests() {
                    if request.why.trim().is_empty() {
                        return Err(InvalidManifest::NoWhy(request.words));
                    }
                    if request.why.chars().count() > MAX_WHY {
                        return Err(InvalidManifest::LongWhy(request.words));
                    }
                }
                let mut names = BTreeSet::new();
                $(for request in self.$key.as_slice() {
                    if let Some(name) = request.name()
                        && !names.insert(name.clone())
                    {
                        return Err(InvalidManifest::Twice(name));
                    }
                    request.check()?;
                })*
                Ok(())
            }

            /// Whether it requests anything of this capability.
            #[must_use]
            pub fn requests_any(&self, capability: Capability) -> bool {
                let requested = [$((Capability::$capability, !self.$key.as_slice().is_empty()),)*];
                requested.contains(&(capability, true))
            }

            /// Every request, one by one.
            #[must_use]
            pub fn requests(&self) -> Vec<SingleRequest<'_>> {
                let mut all = Vec::new();
                $(for request in self.$key.as_slice() {
                    let alone = Self { $key: All::of(request.clone()), ..Self::default() };
                    all.push(SingleRequest { words: request.words(), why: &request.why, alone });
                })*
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
                if let Some(manifest) = manifest { manifest.meet(&grants) } else { grants }
            }

            /// What is both granted and requested.
            #[must_use]
            pub fn meet(&self, granted: &Grants) -> Grants {
                Grants { $($key: crate::$folder::$request::meet(&granted.$key, self.$key.as_slice()),)* }
            }

            /// Whether everything that is requested is granted.
            #[must_use]
            pub fn is_covered(&self, granted: &Grants) -> bool {
                $(self.$key.iter().all(|request| request.is_covered(&granted.$key)))&&*
            }
        }
    };
}

listed!(manifest);
