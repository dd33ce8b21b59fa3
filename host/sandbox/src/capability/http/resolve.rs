//! From a host's name to the addresses that are connected to. What was checked is what is used: the name is looked up once
//! for each request, the answer is filtered, and nothing looks it up again, so a name cannot change between check and use.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::Semaphore;
use url::Host;

use super::Reach;
use super::address::may_reach;

/// Finds the addresses of a host's name. It may find any: what may not be reached is filtered afterwards.
pub trait Resolver: Send + Sync {
    /// The addresses of a name, in the order in which they are to be tried. Called on the runtime for I/O.
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// Lookups at once. One cannot be broken off, so whoever asks for names whose servers do not answer holds up others'
/// lookups, and never the threads that the host needs for other things.
const LOOKUPS: usize = 64;

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;

/// The resolver of the operating system.
#[derive(Debug, Clone)]
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS)))
    }
}

impl Resolver for SystemResolver {
    fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let (lookups, name) = (Arc::clone(&self.0), name.to_owned());
        Box::pin(async move {
            let place = lookups.acquire_owned().await.map_err(io::Error::other)?;
            let look_up = move || {
                // Kept until the answer is there, even if nobody waits for it any more.
                let _place = place;
                Ok((name.as_str(), 0).to_socket_addrs()?.map(|address| address.ip()).collect())
            };
            tokio::task::spawn_blocking(look_up).await.map_err(io::Error::other)?
        })
    }
}

/// Why there is nothing to connect to.
#[derive(Debug)]
pub(super) enum Unreachable {
    /// The name has no address, as far as can be found out.
    Unknown(io::Error),
    /// None of its addresses may be reached.
    Prohibited(Vec<IpAddr>),
}

/// The addresses that a request to this host may be sent to: never none.
pub(super) async fn resolve(
    resolver: &dyn Resolver,
    host: &Host<String>,
    port: u16,
    reach: Reach,
) -> Result<Vec<SocketAddr>, Unreachable> {
    let found = match host {
        Host::Ipv4(address) => vec![IpAddr::V4(*address)],
        Host::Ipv6(address) => vec![IpAddr::V6(*address)],
        Host::Domain(name) => resolver.addresses(name).await.map_err(Unreachable::Unknown)?,
    };
    let allowed = found.iter().filter(|address| may_reach(**address, reach)).take(MOST_ADDRESSES);
    let allowed: Vec<_> = allowed.map(|address| SocketAddr::new(*address, port)).collect();
    match (allowed.is_empty(), found.is_empty()) {
        (false, _) => Ok(allowed),
        (true, true) => Err(Unreachable::Unknown(io::Error::other("the name has no address"))),
        (true, false) => Err(Unreachable::Prohibited(found)),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use futures::future::ready;

    use super::*;

    /// Finds these.
    struct Found(Vec<&'static str>);

    impl Resolver for Found {
        fn addresses(&self, _name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let parsed = self.0.iter().map(|text| text.parse().expect("an address")).collect();
            Box::pin(ready(Ok(parsed)))
        }
    }

    fn resolved(found: &[&'static str], reach: Reach) -> Result<Vec<String>, Unreachable> {
        let host = Host::Domain("example.com".to_owned());
        let answer = resolve(&Found(found.to_vec()), &host, 443, reach).now_or_never().expect("at once");
        answer.map(|addresses| addresses.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn only_what_may_be_reached_is_left_and_nothing_is_an_error() {
        let mixed = ["10.0.0.1", "1.1.1.1", "::ffff:1.1.1.1", "2606:4700::1111", "169.254.169.254"];
        assert_eq!(resolved(&mixed, Reach::Public).expect("two"), ["1.1.1.1:443", "[2606:4700::1111]:443"]);
        let private = resolved(&mixed, Reach::Private).expect("three");
        assert_eq!(private, ["10.0.0.1:443", "1.1.1.1:443", "[2606:4700::1111]:443"]);
        assert!(
            matches!(resolved(&["10.0.0.1"], Reach::Public), Err(Unreachable::Prohibited(found)) if found.len() == 1)
        );
        assert!(matches!(resolved(&["169.254.169.254"], Reach::Private), Err(Unreachable::Prohibited(_))));
        assert!(matches!(resolved(&[], Reach::Public), Err(Unreachable::Unknown(_))));
        assert_eq!(resolved(&["1.1.1.1"; 100], Reach::Public).map(|all| all.len()).ok(), Some(MOST_ADDRESSES));
    }

    #[test]
    fn an_address_is_checked_like_a_name() {
        let literal = |host: Host<String>, reach| {
            resolve(&Found(vec![]), &host, 80, reach).now_or_never().expect("at once").is_ok()
        };
        assert!(literal(Host::Ipv4([1, 1, 1, 1].into()), Reach::Public));
        assert!(!literal(Host::Ipv4([127, 0, 0, 1].into()), Reach::Public));
        assert!(literal(Host::Ipv4([127, 0, 0, 1].into()), Reach::Private));
        assert!(!literal(Host::Ipv4([0, 0, 0, 0].into()), Reach::Private));
        assert!(!literal(Host::Ipv6("::ffff:7f00:1".parse().expect("an address")), Reach::Private));
    }
}
