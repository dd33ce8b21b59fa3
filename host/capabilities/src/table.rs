//! The table `[plugin.NAME.grants]` of `toolgate.toml`: what one plugin may use. Nothing in it is a default.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grants::Grants;
use crate::list::listed;
use crate::manifest::Manifest;
use crate::request::{GrantRequest, InvalidGrant, is_default};

macro_rules! tables {
    ($(#[doc = $doc:literal] $key:ident: $folder:ident::$request:ident of $capability:ident
        $(, linked by $linked:ident)?;)*) => {
        /// The grants to a plugin.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct GrantsTable {
            $(#[doc = $doc]
            #[serde(skip_serializing_if = "crate::request::is_default")]
            pub $key: <crate::$folder::$request as GrantRequest>::Table,)*
        }

        /// The values that the host got for the grants of a plugin when it started. The default is enough where no call runs.
        #[derive(Debug, Clone, Default)]
        pub struct Opened {
            $(pub $key: <crate::$folder::$request as GrantRequest>::Opened,)*
        }

        impl GrantsTable {
            /// The grants of the table. Paths are relative to `beside`.
            #[must_use]
            pub fn grants(&self, beside: &Path, opened: &Opened) -> Grants {
                Grants { $($key: crate::$folder::$request::granted(&self.$key, beside, &opened.$key),)* }
            }

            /// Checks everything that one value alone does not show.
            ///
            /// # Errors
            /// The first fault.
            pub fn check(&self) -> Result<(), InvalidGrant> {
                $(crate::$folder::$request::check_table(&self.$key).map_err(|mut invalid| {
                    invalid.keys.insert(0, stringify!($key).to_owned());
                    invalid
                })?;)*
                self.check_names()
            }

            /// Adds the requests of a manifest that these grants do not cover and that a grant can give.
            pub fn add_missing(&mut self, requested: &Manifest, granted: &Grants) {
                $(for request in requested.$key.iter().filter(|request| !request.is_covered(&granted.$key)) {
                    if request.refusal().is_none() {
                        request.add_to(&mut self.$key);
                    }
                })*
            }
        }
    };
}

listed!(tables);

impl GrantsTable {
    /// Whether it grants anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        is_default(self)
    }

    /// A plugin reads values and secrets by name, so a name belongs to one of them.
    fn check_names(&self) -> Result<(), InvalidGrant> {
        let both =
            self.secrets.keys().find(|name| self.config.as_ref().is_some_and(|values| values.contains_key(name)));
        both.map_or(Ok(()), |name| {
            let keys = ["secrets".to_owned(), name.to_string()];
            let message = format!("`{name}` is a value and a secret");
            Err(InvalidGrant::at(keys, message, "a plugin asks for both by name; rename one of them"))
        })
    }
}
