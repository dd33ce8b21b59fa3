//! Translators from IPv6 to IPv4 (NAT64) with a prefix of their own network. Behind such a prefix, a public IPv6 address leads
//! to any IPv4 address, also to one that no request may reach. The host finds the prefixes as RFC 7050 says: it looks up a
//! name that has only IPv4 addresses. If the network's resolver translates, it answers with IPv6 addresses that begin with
//! the prefix.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::Resolver;
use super::address::{Block6, is_public, within_6};

/// The name that RFC 7050 defines.
const NAME: &str = "ipv4only.arpa";

/// Its only addresses: 192.0.0.170 and 192.0.0.171.
const ONLY: [u32; 2] = [0xc000_00aa, 0xc000_00ab];

/// The lengths that a prefix can have (RFC 6052).
const LENGTHS: [u32; 6] = [96, 64, 56, 48, 40, 32];

/// Knows the prefixes of this network's translators.
pub struct Nat64 {
    resolver: Arc<dyn Resolver>,
    /// Kept after the first answer, until the host restarts.
    prefixes: OnceCell<Vec<Block6>>,
}

impl Nat64 {
    #[must_use]
    pub fn new(resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, prefixes: OnceCell::new() }
    }

    /// The addresses among these that do not lead through a translator.
    pub async fn untranslated(&self, mut found: Vec<IpAddr>) -> Vec<IpAddr> {
        // Only a public IPv6 address can have such a prefix. The others are filtered by their own blocks.
        if found.iter().any(|address| address.is_ipv6() && is_public(*address)) {
            let prefixes = self.prefixes().await;
            found.retain(|address| match address {
                IpAddr::V4(_) => true,
                IpAddr::V6(address) => !prefixes.iter().any(|prefix| within_6(*address, *prefix)),
            });
        }
        found
    }

    async fn prefixes(&self) -> &[Block6] {
        let look_up = || async {
            let found = self.resolver.addresses(NAME).await?;
            let found: Vec<Block6> = found.into_iter().flat_map(prefixes).collect();
            if !found.is_empty() {
                tracing::warn!(prefixes = ?found, "this network translates IPv6 to IPv4; requests through it are refused");
            }
            Ok::<_, std::io::Error>(found)
        };
        match self.prefixes.get_or_try_init(look_up).await {
            Ok(prefixes) => prefixes,
            Err(error) => {
                tracing::debug!(%error, "{NAME} could not be looked up, so translators are not recognised");
                &[]
            }
        }
    }
}

/// The prefixes with which a translator can have made this address of [`NAME`]. Several lengths can fit.
fn prefixes(address: IpAddr) -> Vec<Block6> {
    let IpAddr::V6(address) = address else { return Vec::new() };
    let fits = |length: &u32| embedded(address, *length).is_some_and(|inner| ONLY.contains(&inner));
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
    use std::collections::BTreeMap;
    use std::io;

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

    struct Names(BTreeMap<&'static str, &'static str>);

    impl Resolver for Names {
        fn addresses(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let found = self.0.get(name).map(|all| all.split(' ').map(|one| one.parse().expect(one)).collect());
            Box::pin(std::future::ready(found.ok_or_else(|| io::Error::other("there is no such name"))))
        }
    }

    #[tokio::test]
    async fn addresses_behind_an_own_prefix_are_refused() {
        const PUBLIC: &str = "2606:4700::1111";
        for (answer, address, is_kept) in [
            (Some("192.0.0.170 192.0.0.171"), "2a01:4f8:64::a00:1", true),
            (Some("192.0.0.170 2a01:4f8:64::c000:aa"), "2a01:4f8:64::a00:1", false),
            (Some("192.0.0.170 2a01:4f8:64::c000:aa"), "2a01:4f8:65::a00:1", true),
            (Some("2a01:4f8:64:0:c0:0:ab00:0"), "2a01:4f8:64:0:a:0:100:0", false),
            (Some("2a01:4f8:64:0:c0:0:ab00:0"), PUBLIC, true),
            (None, PUBLIC, true),
        ] {
            let names = answer.map(|answer| (NAME, answer)).into_iter().collect();
            let nat64 = Nat64::new(Arc::new(Names(names)));
            let found = vec![IpAddr::from([1, 1, 1, 1]), address.parse().expect(address)];
            assert_eq!(nat64.untranslated(found).await.len() == 2, is_kept, "{answer:?} {address}");
        }
    }
}
