//! Finds the addresses of a host's name. The name is looked up once for each request, and the connection uses the filtered
//! addresses, so that a name cannot change between check and use.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use domain::PluginName;
use tokio::sync::Semaphore;
use url::Host;

use super::address::may_reach;
use super::{Nat64, Reach, Resolver};
use crate::per_plugin::PerPlugin;

/// Lookups of one plugin at once, so that names whose servers do not answer delay only this plugin.
const MAX_LOOKUPS_OF_PLUGIN: usize = 8;

/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// The reason why there is no address to connect to.
#[derive(Debug)]
pub(super) enum Unreachable {
    /// The lookup found no address.
    Unknown(io::Error),
    /// The rules allow none of these addresses.
    Prohibited(Vec<IpAddr>),
}

/// The lookups of all plugins.
pub(super) struct Lookups {
    resolver: Arc<dyn Resolver>,
    nat64: Nat64,
    permits: PerPlugin<Semaphore>,
}

impl Lookups {
    pub(super) fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { nat64: Nat64::new(Arc::clone(&resolver)), resolver, permits: PerPlugin::default() }
    }

    async fn addresses(&self, plugin: &PluginName, name: &str) -> io::Result<Vec<IpAddr>> {
        let permit = self
            .permits
            .of(plugin, || Arc::new(Semaphore::new(MAX_LOOKUPS_OF_PLUGIN)))
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let finding = self.resolver.addresses(name);
        // A separate task keeps the permit until the lookup ends, even if nobody waits for it.
        let looked_up = tokio::spawn(async move {
            let _permit = permit;
            finding.await
        });
        looked_up.await.map_err(io::Error::other)?
    }
}

/// The addresses that a request to this host may connect to, at least one.
pub(super) async fn resolve(
    lookups: &Lookups,
    plugin: &PluginName,
    host: &Host<String>,
    port: u16,
    reach: Reach,
) -> Result<Vec<SocketAddr>, Unreachable> {
    let found = match host {
        Host::Ipv4(address) => vec![IpAddr::V4(*address)],
        Host::Ipv6(address) => vec![IpAddr::V6(*address)],
        Host::Domain(name) => lookups.addresses(plugin, name).await.map_err(Unreachable::Unknown)?,
    };
    let allowed = allowed(found, reach)?;
    let untranslated = lookups.nat64.untranslated(allowed.clone()).await;
    if untranslated.is_empty() {
        return Err(Unreachable::Prohibited(allowed));
    }
    Ok(untranslated.into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

/// The allowed ones of the found addresses.
fn allowed(found: Vec<IpAddr>, reach: Reach) -> Result<Vec<IpAddr>, Unreachable> {
    let allowed = found.iter().filter(|address| may_reach(**address, reach)).take(MAX_ADDRESSES);
    let allowed: Vec<_> = allowed.copied().collect();
    match (allowed.is_empty(), found.is_empty()) {
        (false, _) => Ok(allowed),
        (true, true) => Err(Unreachable::Unknown(io::Error::other("the name has no address"))),
        (true, false) => Err(Unreachable::Prohibited(found)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures::future::{BoxFuture, pending};

    use super::*;

    fn resolved(found: &[&str], reach: Reach) -> Result<Vec<String>, Unreachable> {
        let found = found.iter().map(|text| text.parse().expect("an address")).collect();
        allowed(found, reach).map(|addresses| addresses.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn only_allowed_addresses_remain_and_no_address_is_an_error() {
        let mixed = ["10.0.0.1", "1.1.1.1", "::ffff:1.1.1.1", "2606:4700::1111", "169.254.169.254"];
        assert_eq!(resolved(&mixed, Reach::Public).expect("two"), ["1.1.1.1", "2606:4700::1111"]);
        let private = resolved(&mixed, Reach::Private).expect("three");
        assert_eq!(private, ["10.0.0.1", "1.1.1.1", "2606:4700::1111"]);
        assert!(
            matches!(resolved(&["10.0.0.1"], Reach::Public), Err(Unreachable::Prohibited(found)) if found.len() == 1)
        );
        assert!(matches!(resolved(&["169.254.169.254"], Reach::Private), Err(Unreachable::Prohibited(_))));
        assert!(matches!(resolved(&[], Reach::Public), Err(Unreachable::Unknown(_))));
        assert_eq!(resolved(&["1.1.1.1"; 100], Reach::Public).map(|all| all.len()).ok(), Some(MAX_ADDRESSES));
    }

    /// Never answers, and counts the lookups.
    struct Silent(Arc<Mutex<usize>>);

    impl Resolver for Silent {
        fn addresses(&self, _name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            *self.0.lock().expect("no panic") += 1;
            Box::pin(pending())
        }
    }

    #[test]
    fn a_plugin_with_slow_names_delays_only_its_own_lookups() {
        let asked = Arc::new(Mutex::new(0));
        let lookups = Lookups::new(Arc::new(Silent(Arc::clone(&asked))));
        let (slow, other) = ["slow", "other"].map(|name| PluginName::new(name).expect("a name")).into();
        let host = Host::Domain("example.com".to_owned());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            // The caller gives up at once, and the lookup goes on.
            for plugin in std::iter::repeat_n(&slow, 20).chain([&other]) {
                let asking = resolve(&lookups, plugin, &host, 80, Reach::Public);
                assert!(futures::FutureExt::now_or_never(asking).is_none());
            }
        });
        assert_eq!(*asked.lock().expect("no panic"), MAX_LOOKUPS_OF_PLUGIN + 1);
    }
}
