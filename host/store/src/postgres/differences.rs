//! Differences between this host and the others on its database in what all of them should have equal. Each renewal of the lease
//! compares them. The log has each difference once, after it has lasted: during an update, hosts differ for a moment.

use std::collections::BTreeMap;

use dispatch::ports::LivePlugins;
use domain::PluginName;
use uuid::Uuid;

/// The comparisons in a row with the same result after which a difference is logged. Two renewals lie between the first and the last one.
const LASTING: u32 = 3;

/// The number of plugins that a line of the log names.
const MAX_NAMED: usize = 10;

/// The parts of a host that should be the same at all hosts.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    /// The digest of the secret that all hosts share.
    pub(super) key: Vec<u8>,
    /// The digest of the configuration. `None`: that of another version, which may make another digest of the same configuration.
    pub(super) config: Option<Vec<u8>>,
    /// `None`: not known.
    pub(super) plugins: Option<LivePlugins>,
}

/// The parts that differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Difference {
    key: bool,
    config: bool,
    plugins: Vec<PluginName>,
}

impl Difference {
    fn between(own: &Setup, other: &Setup) -> Self {
        let configs = own.config.as_ref().zip(other.config.as_ref());
        let plugins = own.plugins.as_ref().zip(other.plugins.as_ref());
        Self {
            key: own.key != other.key,
            config: configs.is_some_and(|(own, other)| own != other),
            plugins: plugins.map_or_else(Vec::new, |(own, other)| own.differing(other)),
        }
    }

    /// Logs the parts that are not in the difference that was logged before.
    fn log(&self, host: &str, before: &Self) {
        if *self == Self::default() {
            tracing::info!(host, "this host and another host on this database no longer differ");
        }
        if self.key && !before.key {
            tracing::error!(
                host,
                "another host on this database has another key, so sessions and links of one are not valid at the other; give \
                 all hosts the same `key_file` in `[store]`, and start them again"
            );
        }
        if self.config && !before.config {
            tracing::warn!(
                host,
                "another host on this database has another configuration; give all hosts the same `toolgate.toml`, and start \
                 them again"
            );
        }
        if !self.plugins.is_empty() && self.plugins != before.plugins {
            tracing::warn!(
                host,
                plugins = named(&self.plugins),
                "another host on this database has other plugins; give the folders of plugins of all hosts the same files, and \
                 for names with `mcp:` give all hosts the same `toolgate.upstreams.json`"
            );
        }
    }
}

fn named(plugins: &[PluginName]) -> String {
    let names = plugins.iter().take(MAX_NAMED).map(PluginName::as_str).collect::<Vec<_>>().join(", ");
    match plugins.len().saturating_sub(MAX_NAMED) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// The comparisons with one other host.
#[derive(Debug, Default)]
struct Compared {
    last: Difference,
    /// The number of comparisons in a row that found `last`.
    times: u32,
    /// The difference that was logged last.
    logged: Difference,
}

/// The comparisons with the other hosts, by their runs.
#[derive(Debug, Default)]
pub(super) struct Differences(BTreeMap<Uuid, Compared>);

impl Differences {
    /// Compares this host with all others that are alive, and logs lasting differences that the log does not have.
    pub(super) fn compare(&mut self, own: &Setup, others: Vec<(Uuid, String, Setup)>) {
        for (host, [before, difference]) in self.lasting(own, others) {
            difference.log(&host, &before);
        }
    }

    /// The hosts with a lasting difference that is not the one that was logged before. Each comes with the earlier and the new one.
    fn lasting(&mut self, own: &Setup, others: Vec<(Uuid, String, Setup)>) -> Vec<(String, [Difference; 2])> {
        self.0.retain(|run, _| others.iter().any(|(other, ..)| other == run));
        let mut found = Vec::new();
        for (run, name, other) in others {
            let (compared, difference) = (self.0.entry(run).or_default(), Difference::between(own, &other));
            compared.times = if difference == compared.last { compared.times.saturating_add(1) } else { 1 };
            compared.last = difference.clone();
            if compared.times >= LASTING && difference != compared.logged {
                let before = std::mem::replace(&mut compared.logged, difference.clone());
                found.push((name, [before, difference]));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use domain::Digest;

    use super::*;

    /// Parts of a host. Each plugin has the content of its component.
    fn setup(config: &str, plugins: Option<&[(&str, &str)]>) -> Setup {
        let plugin = |(name, component): &(&str, &str)| (PluginName::new(name).unwrap(), Digest::of(component));
        let plugins = plugins.map(|plugins| LivePlugins(plugins.iter().map(plugin).collect()));
        Setup { key: b"key".to_vec(), config: Some(config.into()), plugins }
    }

    /// The differences that are logged, with one other host.
    fn logged(differences: &mut Differences, own: &Setup, other: &Setup) -> Vec<Difference> {
        let found = differences.lasting(own, vec![(Uuid::from_u128(7), "b".to_owned(), other.clone())]);
        found.into_iter().map(|(_, [_, difference])| difference).collect()
    }

    fn of_plugins(names: &[&str]) -> Difference {
        let plugins = names.iter().map(|name| PluginName::new(name).unwrap()).collect();
        Difference { plugins, ..Difference::default() }
    }

    #[test]
    fn lasting_difference_is_logged_once() {
        let mut all = Differences::default();
        let own = setup("one", Some(&[("a", "1"), ("b", "1")]));
        let mut times = |own: &Setup, other: &Setup| [(); 5].map(|()| logged(&mut all, own, other));
        let none = Vec::new;
        assert_eq!(times(&own, &own), [(); 5].map(|()| none()));
        let other = setup("one", Some(&[("a", "2"), ("b", "1"), ("c", "1")]));
        assert_eq!(times(&own, &other), [none(), none(), vec![of_plugins(&["a", "c"])], none(), none()]);
        // Another component of a plugin that differed already is nothing new.
        let newer = setup("one", Some(&[("a", "3"), ("b", "1"), ("c", "1")]));
        assert_eq!(times(&own, &newer), [(); 5].map(|()| none()));
        let config = Difference { config: true, ..of_plugins(&["a", "c"]) };
        let both = setup("two", Some(&[("a", "3"), ("b", "1"), ("c", "1")]));
        assert_eq!(times(&own, &both), [none(), none(), vec![config], none(), none()]);
        assert_eq!(times(&both, &both), [none(), none(), vec![Difference::default()], none(), none()]);
    }

    #[test]
    fn difference_that_changes_is_not_logged_yet() {
        let mut all = Differences::default();
        let own = setup("one", Some(&[]));
        for plugin in ["a", "b", "c", "d"] {
            let other = setup("one", Some(&[(plugin, "1")]));
            assert_eq!([(); 2].map(|()| logged(&mut all, &own, &other)), [Vec::new(), Vec::new()], "{plugin}");
        }
        // The comparisons with a host that was not alive meanwhile do not count.
        let other = setup("one", Some(&[("d", "1")]));
        assert!(all.lasting(&own, Vec::new()).is_empty());
        assert_eq!(logged(&mut all, &own, &other), []);
    }

    #[test]
    fn line_of_the_log_names_a_bounded_number_of_plugins() {
        let plugins: Vec<_> = (10..30).map(|n| PluginName::new(&format!("p{n}")).unwrap()).collect();
        assert_eq!(named(&plugins[..2]), "p10, p11");
        assert!(named(&plugins[..10]).ends_with(", p19"));
        assert!(named(&plugins).ends_with(", p19 and 10 more"));
    }

    #[test]
    fn parts_that_are_not_known_do_not_differ() {
        let (known, unknown) = (setup("one", Some(&[("a", "1")])), setup("one", None));
        assert_eq!(Difference::between(&known, &unknown), Difference::default());
        assert_eq!(Difference::between(&unknown, &known), Difference::default());
        let (one, other) = (setup("one", None), Setup { config: None, ..unknown.clone() });
        assert_eq!(Difference::between(&one, &other), Difference::default());
        let other_key = Setup { key: b"another".to_vec(), ..known.clone() };
        assert_eq!(Difference::between(&known, &other_key), Difference { key: true, ..Difference::default() });
    }
}
