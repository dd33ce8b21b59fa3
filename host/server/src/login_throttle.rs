//! Limits how often one network may present a wrong token or link. The host looks a token or link up first and counts only
//! wrong ones: behind a proxy, all clients are one network. A token has 256 random bits and a link a signature of 256 bits, so
//! the limit does not have to prevent guessing. It tells a client that repeats a wrong attempt to wait.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use domain::{Span, Timestamp};

use crate::error::{Error, Result};

/// The wrong attempts that one network may make in a window.
const MAX_ATTEMPTS: u32 = 10;

/// The length of a window, from its first wrong attempt.
const WINDOW: Span = Span::from_secs(60);

/// The number of networks that are tracked. One more replaces the one whose window began first.
const MAX_NETWORKS: usize = 4_096;

/// The address that a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// Wrong attempts by network.
#[derive(Default)]
pub(crate) struct LoginThrottle(Mutex<HashMap<IpAddr, Window>>);

struct Window {
    wrong: u32,
    since: Timestamp,
}

impl LoginThrottle {
    /// Counts a wrong attempt. Right ones are neither counted nor refused, so nobody can keep the others of a network out.
    ///
    /// # Errors
    /// `busy` when the network was wrong too often.
    pub(crate) fn wrong(&self, peer: Option<Peer>, now: Timestamp) -> Result<()> {
        let network = network(peer);
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !windows.contains_key(&network) && windows.len() >= MAX_NETWORKS {
            windows.retain(|_, window| now < window.since + WINDOW);
            let first = windows.iter().min_by_key(|(_, window)| window.since).map(|(network, _)| *network);
            if let Some(first) = first.filter(|_| windows.len() >= MAX_NETWORKS) {
                windows.remove(&first);
            }
        }
        let window = windows.entry(network).or_insert(Window { wrong: 0, since: now });
        if now >= window.since + WINDOW {
            *window = Window { wrong: 0, since: now };
        }
        if window.wrong >= MAX_ATTEMPTS {
            let left = (window.since + WINDOW) - now;
            let detail = "too many wrong attempts to log in from this address; try the right token or link";
            return Err(Error::busy(detail, left.millis().div_ceil(1_000).max(1)));
        }
        window.wrong += 1;
        Ok(())
    }
}

/// The network of a peer: an IPv4 address, or the first 64 bits of an IPv6 address, because providers give each
/// customer at least a /64.
pub(crate) fn network(peer: Option<Peer>) -> IpAddr {
    match peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |Peer(address)| address.to_canonical()) {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Option<Peer> {
        Some(Peer(address.parse().unwrap()))
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn ten_wrong_attempts_block_only_that_network_for_a_minute() {
        let login_throttle = LoginThrottle::default();
        let one = peer("192.0.2.1");
        for second in 0..10 {
            assert!(login_throttle.wrong(one, at(second)).is_ok(), "{second}");
        }
        assert!(login_throttle.wrong(one, at(59)).is_err());
        for other in ["192.0.2.2", "2001:db8::1"] {
            assert!(login_throttle.wrong(peer(other), at(59)).is_ok());
        }
        assert!(
            login_throttle.wrong(peer("::ffff:192.0.2.1"), at(59)).is_err(),
            "the same address in another spelling"
        );
        assert!(login_throttle.wrong(one, at(60)).is_ok());
    }

    #[test]
    fn ipv6_prefix_is_one_network_and_their_number_is_limited() {
        let login_throttle = LoginThrottle::default();
        for low in 0..10 {
            login_throttle.wrong(peer(&format!("2001:db8::{low:x}")), at(1)).unwrap();
        }
        assert!(login_throttle.wrong(peer("2001:db8::ffff:1"), at(1)).is_err());
        for other in 0..=u16::MAX {
            login_throttle.wrong(peer(&format!("2001:db8:1:{other:x}::1")), at(2)).unwrap();
        }
        assert_eq!(login_throttle.0.lock().unwrap().len(), MAX_NETWORKS);
        assert!(login_throttle.wrong(peer("2001:db8::1"), at(2)).is_ok(), "the oldest is forgotten");
    }
}
