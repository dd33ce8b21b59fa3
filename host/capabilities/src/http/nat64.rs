//! Translators from IPv6 to IPv4 (NAT64) with a prefix of their own network. Behind such a prefix, an IPv6 address leads to any
//! IPv4 address, also to one that no request may reach. The host finds the prefixes as RFC 7050 says: it looks up a name that
//! has only IPv4 addresses. If the network's resolver translates, it answers with IPv6 addresses that begin with the prefix.
//!
//! While the host does not know the prefixes, it reaches no IPv6 address but its own machine's.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::Resolver;
use super::address::{Block6, within_6};

/// The name that RFC 7050 defines.
const NAME: &str = "ipv4only.arpa";

/// Its only addresses.
const ONLY: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];

/// The lengths that a prefix can have (RFC 6052).
const LENGTHS: [u32; 6] = [96, 64, 56, 48, 40, 32];

/// The time after which the host looks again, because the machine may be in another network.
const FRESH: Duration = Duration::from_secs(600);

/// The time after a failed lookup in which the host does not repeat it.
const PAUSE: Duration = Duration::from_secs(5);

/// Knows the prefixes of this network's translators.
pub struct Nat64 {
    resolver: Arc<dyn Resolver>,
    known: Arc<Mutex<Option<Known>>>,
}

/// The result of the last lookup.
struct Known {
    at: Instant,
    /// `None` if the lookup failed.
    prefixes: Option<Arc<[Block6]>>,
}

impl Known {
    fn is_valid(&self, now: Instant) -> bool {
        now.duration_since(self.at) < if self.prefixes.is_some() { FRESH } else { PAUSE }
    }
}

impl Nat64 {
    #[must_use]
    pub fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, known: Arc::default() }
    }

    /// The addresses among these that surely do not lead through a translator.
    pub async fn untranslated(&self, found: Vec<IpAddr>) -> Vec<IpAddr> {
        self.untranslated_at(Instant::now(), found).await
    }

    async fn untranslated_at(&self, now: Instant, mut found: Vec<IpAddr>) -> Vec<IpAddr> {
        let is_certain = |address: &IpAddr| address.is_ipv4() || address.is_loopback();
        if !found.iter().all(is_certain) {
            let prefixes = self.prefixes(now).await;
            found.retain(|address| match (address, &prefixes) {
                (IpAddr::V6(inner), Some(prefixes)) if !is_certain(address) => {
                    !prefixes.iter().any(|prefix| within_6(*inner, *prefix))
                }
                _ => is_certain(address),
            });
        }
        found
    }

    /// `None` if they are unknown.
    async fn prefixes(&self, now: Instant) -> Option<Arc<[Block6]>> {
        let mut known = Arc::clone(&self.known).lock_owned().await;
        if let Some(known) = known.as_ref().filter(|known| known.is_valid(now)) {
            return known.prefixes.clone();
        }
        let looking = self.resolver.addresses(NAME);
        // A separate task, so that requests that are cancelled do not start one lookup after the other.
        let look_up = tokio::spawn(async move {
            let prefixes = looking.await.and_then(prefixes_in);
            if let Err(error) = &prefixes {
                tracing::warn!(
                    %error,
                    "requests to IPv6 addresses are refused, because {NAME} could not be looked up: the host cannot tell \
                     which of them lead through a NAT64 translator to IPv4. If this network has none, put the line \
                     `192.0.0.170 {NAME}` into the hosts file of this machine"
                );
            }
            let prefixes = prefixes.ok();
            *known = Some(Known { at: now, prefixes: prefixes.clone() });
            prefixes
        });
        look_up.await.ok().flatten()
    }
}

/// The prefixes in an answer.
fn prefixes_in(answer: Vec<IpAddr>) -> io::Result<Arc<[Block6]>> {
    let found: Arc<[Block6]> = answer.iter().copied().flat_map(prefixes).collect();
    if !found.is_empty() {
        tracing::info!(prefixes = ?found, "this network translates IPv6 to IPv4; requests through it are refused");
    } else if !ONLY.iter().any(|only| answer.contains(&IpAddr::V4(*only))) {
        return Err(io::Error::other("the resolver answers with other addresses"));
    }
    Ok(found)
}

/// The prefixes with which a translator can have made this address of [`NAME`]. Several lengths can fit.
fn prefixes(address: IpAddr) -> Vec<Block6> {
    let IpAddr::V6(address) = address else { return Vec::new() };
    let fits =
        |length: &u32| embedded(address, *length).is_some_and(|inner| ONLY.contains(&Ipv4Addr::from_bits(inner)));
    let block = |length: u32| {
        let prefix = address.to_bits() >> (128 - length) << (128 - length);
        (Ipv6Addr::from_bits(prefix), length)
    };
    LENGTHS.into_iter().filter(fits).map(block).collect()
}

/// The IPv4 address behind a prefix of this length. The bits 64 to 71 belong to neither and are zero.
fn embedded(address: Ipv6Addr, length: u32) -> Option<u32> {
    let bits = address.to_bits();
    if length == 96 {
        return u32::try_from(bits & u128::from(u32::MAX)).ok();
    }
    if bits >> 56 & 0xff != 0 {
        return None;
    }
    // Without the bits 64 to 71, the address follows the prefix.
    let (before, after) = (bits >> 64, bits & ((1 << 56) - 1));
    let joined = before << 56 | after;
    u32::try_from(joined >> (120 - length - 32) & u128::from(u32::MAX)).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures::FutureExt as _;
    use futures::future::BoxFuture;

    use super::*;

    /// The examples of RFC 6052, section 2.4, for 192.0.2.33.
    #[test]
    fn address_is_found_behind_a_prefix_of_each_length() {
        for (address, length) in [
            ("2001:db8:c000:221::", 32),
            ("2001:db8:1c0:2:21::", 40),
            ("2001:db8:122:c000:2:2100::", 48),
            ("2001:db8:122:3c0:0:221::", 56),
            ("2001:db8:122:344:c0:2:2100::", 64),
            ("2001:db8:122:344::192.0.2.33", 96),
        ] {
            let parsed = address.parse().expect(address);
            assert_eq!(embedded(parsed, length), Some(0xc000_0221), "{address}/{length}");
        }
    }

    /// Answers the questions for [`NAME`] one after the other, and refuses others.
    #[derive(Default)]
    struct Answers(std::sync::Mutex<VecDeque<&'static str>>);

    impl Resolver for Answers {
        fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let next =
                self.0.lock().expect("no panic").pop_front().filter(|answer| name == NAME && *answer != "failed");
            let found = next.map(|all| all.split_whitespace().map(|one| one.parse().expect(one)).collect());
            Box::pin(std::future::ready(found.ok_or_else(|| io::Error::other("there is no such name"))))
        }
    }

    fn nat64(answers: &[&'static str]) -> Nat64 {
        Nat64::new(Arc::new(Answers(std::sync::Mutex::new(answers.iter().copied().collect()))))
    }

    const NONE: &str = "192.0.0.170 192.0.0.171";
    const PUBLIC: &str = "2606:4700::1111";

    #[tokio::test]
    async fn addresses_behind_an_own_prefix_are_refused() {
        for (answer, address, is_kept) in [
            (NONE, "2a01:4f8:64::a00:1", true),
            ("192.0.0.170 2a01:4f8:64::c000:aa", "2a01:4f8:64::a00:1", false),
            ("192.0.0.170 2a01:4f8:64::c000:aa", "2a01:4f8:65::a00:1", true),
            ("2a01:4f8:64:0:c0:0:ab00:0", "2a01:4f8:64:0:a:0:100:0", false),
            ("2a01:4f8:64:0:c0:0:ab00:0", PUBLIC, true),
            // A prefix of the operator's own network leads to the metadata of a cloud as well.
            ("fd64::c000:aa", "fd64::a9fe:a9fe", false),
            ("fd64::c000:aa", "fd65::a9fe:a9fe", true),
            ("fd64::c000:aa", "::1", true),
            // The host does not know which addresses are translated.
            ("failed", PUBLIC, false),
            ("failed", "fd65::1", false),
            ("failed", "::1", true),
            ("", PUBLIC, false),
            ("10.0.0.1 2001:db8::1", PUBLIC, false),
        ] {
            let found = vec![IpAddr::from([1, 1, 1, 1]), address.parse().expect(address)];
            let left = nat64(&[answer]).untranslated(found).await.len();
            assert_eq!(left == 2, is_kept, "{answer:?} {address}: {left} of two addresses are left");
        }
    }

    #[tokio::test]
    async fn translators_are_looked_up_again() {
        let nat64 = nat64(&["failed", NONE, "2606:4700::c000:aa", "failed", NONE]);
        let start = Instant::now();
        let found = || vec![PUBLIC.parse().expect(PUBLIC)];
        let second = Duration::from_secs(1);
        let mut after = start;
        for (wait, is_kept, why) in [
            (Duration::ZERO, false, "the lookup failed"),
            (PAUSE - second, false, "it is not repeated yet"),
            (second, true, "there is no translator"),
            (FRESH - second, true, "the answer is kept"),
            (second, false, "the network has a translator"),
            (FRESH, false, "the lookup failed"),
            (PAUSE, true, "the translator has ended"),
        ] {
            after += wait;
            assert_eq!(nat64.untranslated_at(after, found()).await.len() == 1, is_kept, "{why}");
        }
    }

    /// Never answers, and counts the lookups.
    struct Silent(Arc<std::sync::Mutex<usize>>);

    impl Resolver for Silent {
        fn addresses(&self, _name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            *self.0.lock().expect("no panic") += 1;
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn cancelled_requests_start_one_lookup() {
        let asked = Arc::new(std::sync::Mutex::new(0));
        let nat64 = Nat64::new(Arc::new(Silent(Arc::clone(&asked))));
        for _ in 0..20 {
            let asking = nat64.untranslated(vec![PUBLIC.parse().expect(PUBLIC)]);
            assert!(asking.now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        assert_eq!(*asked.lock().expect("no panic"), 1);
    }
}
