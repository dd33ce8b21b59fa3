//! What a plugin may use: the intersection of the operator's grants to this exact component and its manifest's requests.
//!
//! Pure functions over grants and requests. A request grants nothing: the result allows only what the operator granted.

use std::collections::BTreeSet;

use capabilities::filesystem::Folder;
use capabilities::http::{HttpRule, Reach};
use capabilities::keyvalue::KeyValueQuota;
use capabilities::secrets::{Secret, SecretValue};
use capabilities::{Capability, Grants, HostPattern};
use domain::{Digest, PluginName};

use crate::Settings;
use crate::manifest::{self, Manifest, WantedHttp, WantedSecret};
use crate::words::{Place, Target};

/// The components that a plugin's grants are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Every component under the plugin's name.
    AnyComponent,
    /// These alone; another one has to be looked at first.
    Components(BTreeSet<Digest>),
}

impl Default for Holder {
    fn default() -> Self {
        Self::Components(BTreeSet::new())
    }
}

impl Holder {
    /// Whether the grants are for this component.
    #[must_use]
    pub fn covers(&self, component: Digest) -> bool {
        match self {
            Self::AnyComponent => true,
            Self::Components(components) => components.contains(&component),
        }
    }
}

/// Everything that a component wants, or what most plugins are granted where it does not say: for trying it where nothing that
/// it does leaves the process. Values and secrets are made up, and no folder is opened.
#[must_use]
pub fn made_up(manifest: Option<&Manifest>) -> Grants {
    const VALUE: &str = "made-up-value";
    let Some(wanted) = manifest else {
        let url = Target::try_from("https://example.invalid/".to_owned());
        let http = url.iter().map(|url| url.rule(&BTreeSet::new(), Reach::Public)).collect();
        let config = Some(std::collections::BTreeMap::new());
        return Grants { keyvalue: Some(KeyValueQuota::default()), http, config, ..Grants::default() };
    };
    let secret = |wanted: &WantedSecret| {
        Some(Secret {
            name: wanted.name.as_str().to_owned(),
            value: SecretValue::new(VALUE).ok()?,
            hosts: wanted.hosts.iter().map(|host| host.pattern().clone()).collect(),
            places: wanted.places.iter().map(|place| place.place().clone()).collect(),
        })
    };
    let values = wanted.config.iter().map(|wanted| (wanted.name.as_str().to_owned(), VALUE.to_owned()));
    let granted = Grants {
        keyvalue: Some(KeyValueQuota::default()),
        http: wanted.http.iter().map(|wanted| wanted.url.rule(&wanted.methods, Reach::Public)).collect(),
        config: (!wanted.config.is_empty()).then(|| values.collect()),
        folders: Vec::new(),
        secrets: wanted.secrets.iter().filter_map(secret).collect(),
    };
    effective(&granted, manifest)
}

/// What one component may use under one name, and why not more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The components that the operator's grants are for.
    pub holder: Holder,
    /// What the component wants, if it says so. If not, it gets what is granted.
    pub manifest: Option<Manifest>,
    /// What is granted under the plugin's name, to whichever component.
    pub granted: Grants,
    /// Whether that is granted to this component.
    pub is_holder: bool,
    /// What it may use: granted to it, and wanted.
    pub effective: Grants,
}

/// How much of what is wanted is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// All of it.
    Granted,
    /// Some of it.
    InPart,
    /// Nothing.
    Missing,
}

impl Standing {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::InPart => "in part",
            Self::Missing => "missing",
        }
    }
}

/// One thing that a component wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// What, in our words.
    pub what: String,
    /// Why, in the plugin's words: to be escaped where it is shown.
    pub why: String,
    /// Whether it has it.
    pub standing: Standing,
    /// A manifest that wants this alone.
    pub alone: Manifest,
}

impl Access {
    /// What a component may use under a name.
    #[must_use]
    pub fn of(settings: &Settings, plugin: &PluginName, component: Digest, manifest: Option<Manifest>) -> Self {
        let granted = settings.grants(plugin);
        let holder = settings.holder(plugin);
        let is_holder = holder.covers(component);
        let effective = if is_holder { effective(&granted, manifest.as_ref()) } else { Grants::default() };
        Self { holder, manifest, granted: (*granted).clone(), is_holder, effective }
    }

    /// What it would get if the operator's grants were for it and are not: the reason to look at it.
    #[must_use]
    pub fn withheld(&self) -> Grants {
        if self.is_holder { Grants::default() } else { effective(&self.granted, self.manifest.as_ref()) }
    }

    /// What it wants, one by one; nothing without a manifest.
    #[must_use]
    pub fn wanted(&self) -> Vec<Wanted> {
        let wants = self.manifest.iter().flat_map(Manifest::wants);
        let standing = |want: manifest::Want<'_>| Wanted {
            standing: if self.is_holder { standing(&self.granted, &want.alone) } else { Standing::Missing },
            what: want.words,
            why: want.why.to_owned(),
            alone: want.alone,
        };
        wants.map(standing).collect()
    }

    /// What is granted and nobody wants, in words. Without a manifest that cannot be known.
    #[must_use]
    pub fn surplus(&self) -> Vec<String> {
        let Some(manifest) = &self.manifest else { return Vec::new() };
        let unwanted = |alone: &Grants| words(&effective(alone, Some(manifest))).is_empty();
        apart(&self.granted).iter().filter(|alone| unwanted(alone)).flat_map(words).collect()
    }
}

/// What is granted and wanted. Without a manifest a plugin wants what it is granted.
#[must_use]
pub fn effective(granted: &Grants, wanted: Option<&Manifest>) -> Grants {
    let Some(wanted) = wanted else { return granted.clone() };
    let keyvalue = granted.keyvalue.zip(wanted.keyvalue.as_ref()).map(|(granted, wanted)| KeyValueQuota {
        bytes: wanted.bytes.map_or(granted.bytes, |bytes| bytes.min(granted.bytes)),
        keys: wanted.keys.map_or(granted.keys, |keys| keys.min(granted.keys)),
    });
    let rule = |want: &WantedHttp| want.url.rule(&want.methods, Reach::Public);
    let mut http = Vec::new();
    for wanted in wanted.http.iter().map(rule) {
        for both in granted.http.iter().filter_map(|granted| meet(granted, &wanted)) {
            if !http.contains(&both) {
                http.push(both);
            }
        }
    }
    let names: BTreeSet<&str> = wanted.config.iter().map(|value| value.name.as_str()).collect();
    let config = granted.config.as_ref().filter(|_| !names.is_empty()).map(|values| {
        values.iter().filter(|(name, _)| names.contains(name.as_str())).map(|(n, v)| (n.clone(), v.clone())).collect()
    });
    let folder = |granted: &Folder| {
        let wanted = wanted.folders.iter().find(|wanted| wanted.at.as_str() == granted.at)?;
        Some(Folder { write: granted.write && wanted.write, ..granted.clone() })
    };
    let secrets = manifest::secrets(wanted);
    let secret = |granted: &Secret| secrets.get(granted.name.as_str()).and_then(|wanted| meet_secrets(granted, wanted));
    Grants {
        keyvalue,
        http,
        config,
        folders: granted.folders.iter().filter_map(folder).collect(),
        secrets: granted.secrets.iter().filter_map(secret).collect(),
    }
}

/// What both rules allow. Which addresses a name may lead to is the operator's affair alone.
fn meet(granted: &HttpRule, wanted: &HttpRule) -> Option<HttpRule> {
    if (granted.scheme, granted.port) != (wanted.scheme, wanted.port) {
        return None;
    }
    let methods: BTreeSet<String> = granted.methods.intersection(&wanted.methods).cloned().collect();
    if methods.is_empty() {
        return None;
    }
    let path = narrower(&granted.path, &wanted.path, is_below)?;
    let host = narrower(&granted.host, &wanted.host, is_within)?;
    Some(HttpRule { scheme: granted.scheme, host, port: granted.port, path, methods, reach: granted.reach })
}

/// The one of two that is within the other.
fn narrower<T: Clone>(one: &T, other: &T, within: fn(&T, &T) -> bool) -> Option<T> {
    if within(one, other) { Some(one.clone()) } else { within(other, one).then(|| other.clone()) }
}

/// Whether every host that fits the first pattern fits the second.
fn is_within(inner: &HostPattern, outer: &HostPattern) -> bool {
    if inner == outer {
        return true;
    }
    match inner.as_str().strip_prefix("*.") {
        // What is below a domain is within what is below a domain above it; `x` stands for any of its names.
        Some(domain) => outer.as_str().starts_with("*.") && outer.matches(&format!("x.{domain}")),
        None => outer.matches(inner.as_str()),
    }
}

/// Whether every path below the first is below the second: a segment fits as a whole only.
#[expect(clippy::ptr_arg, reason = "one shape with the other comparison")]
fn is_below(inner: &String, outer: &String) -> bool {
    let rest = inner.strip_prefix(outer.as_str());
    rest.is_some_and(|rest| rest.is_empty() || outer.ends_with('/') || rest.starts_with('/'))
}

/// A secret for the hosts and places that are both granted and requested; `None` without any.
fn meet_secrets(granted: &Secret, wanted: &WantedSecret) -> Option<Secret> {
    let mut hosts = Vec::new();
    for one in &granted.hosts {
        for host in wanted.hosts.iter().filter_map(|other| narrower(one, other.pattern(), is_within)) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    let wants = |place: &&_| wanted.places.iter().any(|wanted| wanted.place() == *place);
    let places: Vec<_> = granted.places.iter().filter(wants).cloned().collect();
    let some = !hosts.is_empty() && !places.is_empty();
    some.then(|| Secret { name: granted.name.clone(), value: granted.value.clone(), hosts, places })
}

/// How much of what is wanted is granted. The manifest wants one thing.
fn standing(granted: &Grants, alone: &Manifest) -> Standing {
    let both = effective(granted, Some(alone));
    let is_there = match &both.config {
        Some(values) => !values.is_empty() || !both.secrets.is_empty(),
        None => both != Grants::default(),
    };
    if !is_there {
        return Standing::Missing;
    }
    if covers(granted, alone) { Standing::Granted } else { Standing::InPart }
}

/// Whether everything that is wanted is granted.
fn covers(granted: &Grants, wanted: &Manifest) -> bool {
    let keyvalue = wanted.keyvalue.as_ref().is_none_or(|wanted| {
        let fits = |wanted: Option<u64>, granted| wanted.is_none_or(|wanted| wanted <= granted);
        granted.keyvalue.is_some_and(|granted| fits(wanted.bytes, granted.bytes) && fits(wanted.keys, granted.keys))
    });
    let http = wanted.http.iter().all(|wanted| {
        let rule = wanted.url.rule(&wanted.methods, Reach::Public);
        rule.methods.iter().all(|method| {
            let one = HttpRule { methods: [method.clone()].into(), ..rule.clone() };
            granted
                .http
                .iter()
                .any(|granted| meet(granted, &one).is_some_and(|both| HttpRule { reach: Reach::Public, ..both } == one))
        })
    });
    let has = |name: &str| granted.config.as_ref().is_some_and(|values| values.contains_key(name));
    let config = wanted.config.iter().all(|wanted| has(wanted.name.as_str()));
    let folders = wanted.folders.iter().all(|wanted| {
        let fits = |granted: &Folder| granted.at == wanted.at.as_str() && (granted.write || !wanted.write);
        granted.folders.iter().any(fits)
    });
    let secrets = wanted.secrets.iter().all(|wanted| {
        let granted = granted.secrets.iter().find(|granted| granted.name == wanted.name.as_str());
        granted.is_some_and(|granted| {
            let sent = |host: &HostPattern| granted.hosts.iter().any(|outer| is_within(host, outer));
            wanted.hosts.iter().all(|host| sent(host.pattern()))
                && wanted.places.iter().all(|place| granted.places.contains(place.place()))
        })
    });
    keyvalue && http && config && folders && secrets
}

/// Each grant by itself.
fn apart(granted: &Grants) -> Vec<Grants> {
    let nothing = Grants::default;
    let keyvalue = granted.keyvalue.iter().map(|quota| Grants { keyvalue: Some(*quota), ..nothing() });
    let http = granted.http.iter().map(|rule| Grants { http: vec![rule.clone()], ..nothing() });
    let values = granted.config.iter().flatten();
    let config = values.map(|(n, v)| Grants { config: Some([(n.clone(), v.clone())].into()), ..nothing() });
    let folders = granted.folders.iter().map(|folder| Grants { folders: vec![folder.clone()], ..nothing() });
    let secrets = granted.secrets.iter().map(|secret| Grants { secrets: vec![secret.clone()], ..nothing() });
    keyvalue.chain(http).chain(config).chain(folders).chain(secrets).collect()
}

/// Grants in words for people, one each: no value of the configuration, and of a secret its name alone.
#[must_use]
pub fn words(grants: &Grants) -> Vec<String> {
    in_words(grants, |_| String::new())
}

/// The same for the audit: values of the configuration are told apart there, by their digests.
#[must_use]
pub fn recorded(grants: &Grants) -> Vec<String> {
    in_words(grants, |value| format!(" = {}", Digest::of(value)))
}

fn in_words(grants: &Grants, told: fn(&str) -> String) -> Vec<String> {
    let keyvalue = grants
        .keyvalue
        .iter()
        .map(|KeyValueQuota { bytes, keys }| format!("keyvalue: up to {bytes} bytes in {keys} keys"));
    let http = grants.http.iter().map(|rule| match rule.reach {
        Reach::Public => format!("http: {rule}"),
        Reach::Private => format!("http: {rule}, private addresses too"),
    });
    let config = grants.config.iter().flatten().map(|(name, value)| format!("config: {name}{}", told(value)));
    let folders = grants.folders.iter().map(|Folder { path, at, write, .. }| {
        let access = if *write { "read and write" } else { "read only" };
        format!("folder: {at}, {access}, which is {}", path.display())
    });
    let secrets = grants.secrets.iter().map(|Secret { name, hosts, places, .. }| {
        let hosts: Vec<_> = hosts.iter().map(HostPattern::as_str).collect();
        let places: Vec<_> = places.iter().cloned().map(Place::of).collect();
        format!("secret: {name}, to {}, in {}", hosts.join(" "), manifest::list(&places))
    });
    keyvalue.chain(http).chain(config).chain(folders).chain(secrets).collect()
}

/// The lines that give a kind of access to a component, for `[plugin.NAME]` in `toolgate.toml`.
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
