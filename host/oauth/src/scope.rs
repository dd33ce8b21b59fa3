//! Scopes: what a token lets its holder do.

use std::collections::{BTreeMap, BTreeSet};

use domain::Principal;
use domain::ids::Group;
use domain::principal::{Role, Roles};

/// The roles and groups that a scope gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    pub roles: BTreeSet<Role>,
    pub groups: BTreeSet<Group>,
}

impl Scope {
    fn approves(&self) -> bool {
        self.roles.contains(&Role::Approver) || self.roles.contains(&Role::Admin)
    }
}

/// The scopes that mean something here, by name. All others give nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scopes(pub BTreeMap<String, Scope>);

/// One scope, with the role `caller`.
impl Default for Scopes {
    fn default() -> Self {
        let caller = Scope { roles: [Role::Caller].into(), groups: BTreeSet::new() };
        Self(BTreeMap::from([("tools:call".to_owned(), caller)]))
    }
}

impl Scopes {
    /// Adds the roles and groups of these scopes to a principal without any.
    pub(crate) fn give<'a>(&self, names: impl Iterator<Item = &'a str>, principal: Principal) -> Principal {
        let scopes: Vec<&Scope> = names.filter_map(|name| self.0.get(name)).collect();
        let roles: Roles = scopes.iter().flat_map(|scope| &scope.roles).copied().collect();
        let groups: BTreeSet<&Group> = scopes.iter().flat_map(|scope| &scope.groups).collect();
        Principal { roles, groups: groups.into_iter().cloned().collect(), ..principal }
    }

    /// The scope to ask for if this role is missing: one that does not let its holder approve, with few
    /// roles.
    #[must_use]
    pub fn with(&self, role: Role) -> Option<&str> {
        let giving = self.0.iter().filter(|(_, scope)| scope.roles.contains(&role));
        giving.min_by_key(|(_, scope)| (scope.approves(), scope.roles.len())).map(|(name, _)| name.as_str())
    }

    /// The scopes that a client may ask for by itself. Clients ask for all of them, so none lets its holder approve.
    pub fn offered(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, scope)| !scope.approves()).map(|(name, _)| name.as_str())
    }
}
