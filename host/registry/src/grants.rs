//! The access of a plugin: the intersection of the operator's grants to this exact component and its manifest's
//! requests.
//!
//! Pure functions over grants and requests. A request grants nothing: the result allows only what the operator granted.

use std::collections::BTreeSet;

use capabilities::filesystem::Folder;
use capabilities::http::{HttpRule, Reach};
use capabilities::keyvalue::KeyValueQuota;
use capabilities::secrets::{Secret, SecretValue};
use capabilities::{Capability, Grants, HostPattern};
use domain::{Digest, PluginName};

use crate::manifest::{self, Manifest, RequestedHttp, RequestedSecret};
use crate::words::{Place, Target};
use crate::{GrantHolder, RegistrySettings};

/// Grants for a trial run in which nothing leaves the process: all that the manifest requests, or common grants without
/// a manifest. Values and secrets are invented, and no folder is opened.
#[must_use]
pub fn made_up(manifest: Option<&Manifest>) -> Grants {
    const VALUE: &str = "made-up-value";
    let Some(requested) = manifest else {
        let url = Target::try_from("https://example.invalid/".to_owned());
        let http = url.iter().map(|url| url.rule(&BTreeSet::new(), Reach::Public)).collect();
        let config = Some(std::collections::BTreeMap::new());
        let keyvalue = Some(KeyValueQuota::default());
        return Grants { keyvalue, http, config, folders: Vec::new(), secrets: Vec::new() };
    };
    let secret = |requested: &RequestedSecret| {
        Some(Secret {
            name: requested.name.as_str().to_owned(),
            value: SecretValue::new(VALUE).ok()?,
            hosts: requested.hosts.iter().map(|host| host.pattern().clone()).collect(),
            places: requested.places.iter().map(|place| place.place().clone()).collect(),
        })
    };
    let values = requested.config.iter().map(|requested| (requested.name.as_str().to_owned(), VALUE.to_owned()));
    let granted = Grants {
        keyvalue: Some(KeyValueQuota::default()),
        http: requested.http.iter().map(|requested| requested.url.rule(&requested.methods, Reach::Public)).collect(),
        config: (!requested.config.is_empty()).then(|| values.collect()),
        folders: Vec::new(),
        secrets: requested.secrets.iter().filter_map(secret).collect(),
    };
    effective(&granted, manifest)
}

/// The access of one component under one name, with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The components that the operator's grants are for.
    pub holder: GrantHolder,
    /// The component's manifest. Without one, the component gets all that is granted.
    pub manifest: Option<Manifest>,
    /// The operator's grants under the plugin's name.
    pub granted: Grants,
    /// Whether those grants are for this component.
    pub is_holder: bool,
    /// The access: granted to it, and requested.
    pub effective: Grants,
}

/// How much of a request is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantState {
    Granted,
    InPart,
    Missing,
}

impl GrantState {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::InPart => "in part",
            Self::Missing => "missing",
        }
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
    /// A manifest with this request only.
    pub alone: Manifest,
}

impl Access {
    /// Compares the operator's grants with a component's manifest.
    #[must_use]
    pub fn of(settings: &RegistrySettings, plugin: &PluginName, component: Digest, manifest: Option<Manifest>) -> Self {
        let granted = settings.grants(plugin);
        let holder = settings.holder(plugin);
        let is_holder = holder.covers(component);
        let effective = if is_holder { effective(&granted, manifest.as_ref()) } else { Grants::default() };
        Self { holder, manifest, granted: (*granted).clone(), is_holder, effective }
    }

    /// The access that the component would get if the operator's grants were for it. A reason to review it.
    #[must_use]
    pub fn withheld(&self) -> Grants {
        if self.is_holder { Grants::default() } else { effective(&self.granted, self.manifest.as_ref()) }
    }

    /// The requests of the manifest, one by one. Empty without a manifest.
    #[must_use]
    pub fn requested(&self) -> Vec<RequestedGrant> {
        let requests = self.manifest.iter().flat_map(Manifest::requests);
        let requested = |request: manifest::Request<'_>| RequestedGrant {
            state: if self.is_holder { state_of(&self.granted, &request.alone) } else { GrantState::Missing },
            what: request.words,
            why: request.why.to_owned(),
            alone: request.alone,
        };
        requests.map(requested).collect()
    }

    /// Grants that the manifest does not request, as text. Empty without a manifest.
    #[must_use]
    pub fn surplus(&self) -> Vec<String> {
        let Some(manifest) = &self.manifest else { return Vec::new() };
        let unwanted = |alone: &Grants| words(&effective(alone, Some(manifest))).is_empty();
        split(&self.granted).iter().filter(|alone| unwanted(alone)).flat_map(words).collect()
    }
}

/// The intersection of grants and requests. Without a manifest, all grants.
#[must_use]
pub fn effective(granted: &Grants, requested: Option<&Manifest>) -> Grants {
    let Some(requested) = requested else { return granted.clone() };
    let keyvalue = granted.keyvalue.zip(requested.keyvalue.as_ref()).map(|(granted, requested)| KeyValueQuota {
        bytes: requested.bytes.map_or(granted.bytes, |bytes| bytes.min(granted.bytes)),
        keys: requested.keys.map_or(granted.keys, |keys| keys.min(granted.keys)),
    });
    let rule = |request: &RequestedHttp| request.url.rule(&request.methods, Reach::Public);
    let mut http = Vec::new();
    for requested in requested.http.iter().map(rule) {
        for both in granted.http.iter().filter_map(|granted| meet(granted, &requested)) {
            if !http.contains(&both) {
                http.push(both);
            }
        }
    }
    let names: BTreeSet<&str> = requested.config.iter().map(|value| value.name.as_str()).collect();
    let config = granted.config.as_ref().filter(|_| !names.is_empty()).map(|values| {
        values.iter().filter(|(name, _)| names.contains(name.as_str())).map(|(n, v)| (n.clone(), v.clone())).collect()
    });
    let folder = |granted: &Folder| {
        let requested = requested.folders.iter().find(|requested| requested.at.as_str() == granted.at)?;
        Some(Folder { write: granted.write && requested.write, ..granted.clone() })
    };
    let secrets = manifest::secrets(requested);
    let secret =
        |granted: &Secret| secrets.get(granted.name.as_str()).and_then(|requested| meet_secrets(granted, requested));
    Grants {
        keyvalue,
        http,
        config,
        folders: granted.folders.iter().filter_map(folder).collect(),
        secrets: granted.secrets.iter().filter_map(secret).collect(),
    }
}

/// The requests that both rules allow. Only the operator decides which addresses a name may resolve to.
fn meet(granted: &HttpRule, requested: &HttpRule) -> Option<HttpRule> {
    if (granted.scheme, granted.port) != (requested.scheme, requested.port) {
        return None;
    }
    let methods: BTreeSet<String> = granted.methods.intersection(&requested.methods).cloned().collect();
    if methods.is_empty() {
        return None;
    }
    let path = narrower(&granted.path, &requested.path, is_below)?;
    let host = narrower(&granted.host, &requested.host, is_within)?;
    Some(HttpRule { scheme: granted.scheme, host, port: granted.port, path, methods, reach: granted.reach })
}

/// The narrower of two, if one contains the other.
fn narrower<T: Clone>(one: &T, other: &T, within: fn(&T, &T) -> bool) -> Option<T> {
    if within(one, other) { Some(one.clone()) } else { within(other, one).then(|| other.clone()) }
}

/// Whether the second pattern matches every host that the first matches.
fn is_within(inner: &HostPattern, outer: &HostPattern) -> bool {
    if inner == outer {
        return true;
    }
    match inner.as_str().strip_prefix("*.") {
        // `*.a.b` is within `*.b` if any name below `a.b` matches it; `x` is such a name.
        Some(suffix) => outer.as_str().starts_with("*.") && outer.matches(&format!("x.{suffix}")),
        None => outer.matches(inner.as_str()),
    }
}

/// Whether every path below the first is below the second. Segments match only as a whole.
#[expect(clippy::ptr_arg, reason = "both comparisons need the same signature")]
fn is_below(inner: &String, outer: &String) -> bool {
    let rest = inner.strip_prefix(outer.as_str());
    rest.is_some_and(|rest| rest.is_empty() || outer.ends_with('/') || rest.starts_with('/'))
}

/// A secret for the hosts and positions that are both granted and requested. `None` if either set is empty.
fn meet_secrets(granted: &Secret, requested: &RequestedSecret) -> Option<Secret> {
    let mut hosts = Vec::new();
    for one in &granted.hosts {
        for host in requested.hosts.iter().filter_map(|other| narrower(one, other.pattern(), is_within)) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    let requests = |place: &&_| requested.places.iter().any(|requested| requested.place() == *place);
    let places: Vec<_> = granted.places.iter().filter(requests).cloned().collect();
    let some = !hosts.is_empty() && !places.is_empty();
    some.then(|| Secret { name: granted.name.clone(), value: granted.value.clone(), hosts, places })
}

/// How much of the manifest's only request is granted.
fn state_of(granted: &Grants, alone: &Manifest) -> GrantState {
    let both = effective(granted, Some(alone));
    let is_there = match &both.config {
        Some(values) => !values.is_empty() || !both.secrets.is_empty(),
        None => both != Grants::default(),
    };
    if !is_there {
        return GrantState::Missing;
    }
    if covers(granted, alone) { GrantState::Granted } else { GrantState::InPart }
}

/// Whether everything that is requested is granted.
fn covers(granted: &Grants, requested: &Manifest) -> bool {
    let Manifest { keyvalue, http, config, folders, secrets } = requested;
    let keyvalue = keyvalue.as_ref().is_none_or(|requested| {
        let fits = |requested: Option<u64>, granted| requested.is_none_or(|requested| requested <= granted);
        granted
            .keyvalue
            .is_some_and(|granted| fits(requested.bytes, granted.bytes) && fits(requested.keys, granted.keys))
    });
    let http = http.iter().all(|requested| {
        let rule = requested.url.rule(&requested.methods, Reach::Public);
        rule.methods.iter().all(|method| {
            let one = HttpRule { methods: [method.clone()].into(), ..rule.clone() };
            granted
                .http
                .iter()
                .any(|granted| meet(granted, &one).is_some_and(|both| HttpRule { reach: Reach::Public, ..both } == one))
        })
    });
    let has = |name: &str| granted.config.as_ref().is_some_and(|values| values.contains_key(name));
    let config = config.iter().all(|requested| has(requested.name.as_str()));
    let folders = folders.iter().all(|requested| {
        let fits = |granted: &Folder| granted.at == requested.at.as_str() && (granted.write || !requested.write);
        granted.folders.iter().any(fits)
    });
    let secrets = secrets.iter().all(|requested| {
        let granted = granted.secrets.iter().find(|granted| granted.name == requested.name.as_str());
        granted.is_some_and(|granted| {
            let sent = |host: &HostPattern| granted.hosts.iter().any(|outer| is_within(host, outer));
            requested.hosts.iter().all(|host| sent(host.pattern()))
                && requested.places.iter().all(|place| granted.places.contains(place.place()))
        })
    });
    keyvalue && http && config && folders && secrets
}

/// Splits grants into single ones.
fn split(granted: &Grants) -> Vec<Grants> {
    let Grants { keyvalue, http, config, folders, secrets } = granted;
    let nothing = Grants::default;
    let keyvalue = keyvalue.iter().map(|quota| Grants { keyvalue: Some(*quota), ..nothing() });
    let http = http.iter().map(|rule| Grants { http: vec![rule.clone()], ..nothing() });
    let values = config.iter().flatten();
    let config = values.map(|(n, v)| Grants { config: Some([(n.clone(), v.clone())].into()), ..nothing() });
    let folders = folders.iter().map(|folder| Grants { folders: vec![folder.clone()], ..nothing() });
    let secrets = secrets.iter().map(|secret| Grants { secrets: vec![secret.clone()], ..nothing() });
    keyvalue.chain(http).chain(config).chain(folders).chain(secrets).collect()
}

/// Grants as text for people, one line each. Shows no configuration value, and only the name of a secret.
#[must_use]
pub fn words(grants: &Grants) -> Vec<String> {
    in_words(grants, |_| String::new())
}

/// The same for the audit. It distinguishes configuration values by their digests.
#[must_use]
pub fn recorded(grants: &Grants) -> Vec<String> {
    in_words(grants, |value| format!(" = {}", Digest::of(value)))
}

fn in_words(grants: &Grants, suffix: fn(&str) -> String) -> Vec<String> {
    let Grants { keyvalue, http, config, folders, secrets } = grants;
    let keyvalue =
        keyvalue.iter().map(|KeyValueQuota { bytes, keys }| format!("keyvalue: up to {bytes} bytes in {keys} keys"));
    let http = http.iter().map(|rule| match rule.reach {
        Reach::Public => format!("http: {rule}"),
        Reach::Private => format!("http: {rule}, private addresses too"),
    });
    let config = config.iter().flatten().map(|(name, value)| format!("config: {name}{}", suffix(value)));
    let folders = folders.iter().map(|Folder { path, at, write, .. }| {
        let access = if *write { "read and write" } else { "read only" };
        format!("folder: {at}, {access}, which is {}", path.display())
    });
    let secrets = secrets.iter().map(|Secret { name, hosts, places, .. }| {
        let hosts: Vec<_> = hosts.iter().map(HostPattern::as_str).collect();
        let places: Vec<_> = places.iter().cloned().map(Place::of).collect();
        format!("secret: {name}, to {}, in {}", hosts.join(" "), manifest::list(&places))
    });
    keyvalue.chain(http).chain(config).chain(folders).chain(secrets).collect()
}

/// The lines of `[plugin.NAME]` in `toolgate.toml` that grant a capability to a component.
pub(crate) fn lines(access: &Access, component: Digest, capability: Capability) -> Vec<String> {
    let mut lines = Vec::new();
    if !access.is_holder {
        lines.push(format!("component = \"{component}\""));
    }
    match &access.manifest {
        Some(manifest) => lines.extend(manifest.lines(capability)),
        None => lines.push(match capability {
            Capability::KeyValue => "grants.keyvalue = true".to_owned(),
            Capability::Http => "grants.http = [{ url = \"https://api.example.com/\" }]".to_owned(),
            Capability::Config => "grants.config = {}".to_owned(),
            Capability::Filesystem => {
                format!("grants.folders = [{{ path = \"{}\", at = \"/data\" }}]", manifest::SOME_FOLDER)
            }
        }),
    }
    lines
}

#[cfg(test)]
mod tests;
