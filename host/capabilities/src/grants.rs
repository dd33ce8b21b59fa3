//! The accesses that an operator can grant to a plugin, beyond the inert WASI that every guest has.
//!
//! [`Capabilities`] decides which interfaces a component is linked against; [`Grants`] decides what a call may do with
//! them.

use std::fmt;

use domain::doubt::DoubtfulRequests;
use domain::step::Durable;

use crate::interface::Interface;
use crate::list::listed;
use crate::request::{GrantRequest, is_default};

macro_rules! grants {
    ($(#[doc = $doc:literal] $key:ident: $folder:ident::$request:ident of $capability:ident
        $(, linked by $linked:ident)?;)*) => {
        /// A kind of access.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability {
            $($(#[doc = concat!("The interfaces of `", stringify!($linked), "`.")] $capability,)?)*
        }

        impl Capability {
            /// All of them with their names, in the order of their documentation.
            const NAMES: &'static [(Self, &'static str)] = &[$($((Self::$capability, stringify!($linked)),)?)*];

            /// Whether a call with grants of it can be replayed from the results of its host functions.
            #[must_use]
            pub const fn is_replayable(self) -> bool {
                $((self as u8 != Self::$capability as u8 || crate::$folder::$request::IS_REPLAYABLE))&&*
            }

            /// The capability that an import needs, by its package, version and interface.
            #[must_use]
            pub fn behind(package: &str, version: &str, interface: &str) -> Option<Self> {
                $($(if crate::$linked::State::is_behind(package, version, interface) {
                    return Some(Self::$capability);
                })?)*
                None
            }
        }

        /// The grants of a plugin. The default is empty.
        #[derive(Debug, Clone, PartialEq, Eq, Default)]
        pub struct Grants {
            $(#[doc = $doc] pub $key: <crate::$folder::$request as GrantRequest>::Granted,)*
        }

        $(impl AsRef<<crate::$folder::$request as GrantRequest>::Granted> for Grants {
            fn as_ref(&self) -> &<crate::$folder::$request as GrantRequest>::Granted {
                &self.$key
            }
        })*

        impl Grants {
            /// Whether a call can be replayed from the results of its host functions.
            #[must_use]
            pub fn is_replayable(&self) -> bool {
                $((crate::$folder::$request::IS_REPLAYABLE || is_default(&self.$key)))&&*
            }

            /// Whether a call can reach a system outside the host.
            #[must_use]
            pub fn reach_outside(&self) -> bool {
                $(crate::$folder::$request::reaches_outside(&self.$key))||*
            }

            /// Whether a call can change something that outlasts it.
            #[must_use]
            pub fn may_change(&self) -> bool {
                $(crate::$folder::$request::may_change(&self.$key))||*
            }

            /// See [`GrantRequest::doubtful_requests`].
            #[must_use]
            pub fn doubtful_requests(&self, durable: &Durable) -> Option<DoubtfulRequests> {
                None$(.or_else(|| crate::$folder::$request::doubtful_requests(&self.$key, durable)))*
            }

            #[must_use]
            pub fn capabilities(&self) -> Capabilities {
                let granted = [$((Capability::$capability, !is_default(&self.$key)),)*];
                Capabilities::of(granted.into_iter().filter_map(|(capability, is_granted)| is_granted.then_some(capability)))
            }

            /// Each single grant, and its text for people; see [`GrantRequest::each`].
            #[must_use]
            pub fn each(&self, shown: fn(&str) -> String) -> Vec<(Self, String)> {
                let mut all = Vec::new();
                $(for (one, text) in crate::$folder::$request::each(&self.$key, shown) {
                    all.push((Self { $key: one, ..Self::default() }, text));
                })*
                all
            }
        }
    };
}

listed!(grants);

impl Capability {
    /// The name in configuration, findings and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        Self::NAMES[self as usize].1
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(capability, _)| *capability)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of capabilities. The default set is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Capabilities(u8);

impl Capabilities {
    /// All of them. A component is asked for its declarations with every interface linked and nothing granted.
    pub const EVERY: Self = Self(u8::MAX >> (8 - Capability::NAMES.len()));

    pub fn of(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self(capabilities.into_iter().fold(0, |set, capability| set | 1 << capability as u8))
    }

    #[must_use]
    pub const fn holds(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// In the order of their documentation.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::NAMES.iter().map(|(capability, _)| *capability).filter(move |capability| self.holds(*capability))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::{Folder, FolderHandle};
    use crate::http::{HttpRule, Reach};
    use crate::keyvalue::KeyValueQuota;

    fn folder(write: bool) -> Grants {
        let (path, at) = ("/srv/in".into(), "/in".to_owned());
        Grants { folders: vec![Folder { path, at, write, handle: FolderHandle::default() }], ..Grants::default() }
    }

    #[test]
    fn only_folders_cannot_be_replayed() {
        let others: Vec<_> = Capabilities::EVERY.iter().filter(|capability| !capability.is_replayable()).collect();
        assert_eq!(others, [Capability::Filesystem]);
        assert!(Grants::default().is_replayable() && !folder(false).is_replayable());
    }

    #[test]
    fn grants_bound_the_effects_of_calls() {
        let config = Some([("key".to_owned(), "value".to_owned())].into());
        let rule = HttpRule::parse("https://api.example.com/", ["GET".to_owned()].into(), Reach::Public).unwrap();
        for (grants, outside, changes) in [
            (Grants::default(), false, false),
            (Grants { config, ..Grants::default() }, false, false),
            (folder(false), false, false),
            (folder(true), false, true),
            (Grants { keyvalue: Some(KeyValueQuota::default()), ..Grants::default() }, false, true),
            (Grants { http: vec![rule], ..Grants::default() }, true, true),
            (Grants { calls: vec!["other_*".to_owned().try_into().unwrap()], ..Grants::default() }, true, true),
        ] {
            assert_eq!(
                (grants.reach_outside(), grants.may_change()),
                (outside, changes),
                "{:?}",
                grants.each(|_| String::new())
            );
        }
    }
}
