//! Limits how often one network may present a wrong token or link. Both are too long to guess. The limit bounds the
//! cost of attempts.

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
    /// Counts an attempt as wrong before it is checked, so that simultaneous attempts cannot all pass as the last one.
    ///
    /// # Errors
    /// `busy` when the network was wrong too often. Then the attempt must not be checked.
    pub(crate) fn attempt(&self, peer: Option<Peer>, now: Timestamp) -> Result<()> {
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
            let detail = "too many wrong attempts to log in from this address; wait, then try the right token or link";
            return Err(Error::busy(detail, left.millis().div_ceil(1_000).max(1)));
        }
        window.wrong += 1;
        Ok(())
    }

    /// Takes back the count of an attempt that was right. Earlier wrong attempts still count.
    pub(crate) fn right(&self, peer: Option<Peer>) {
        let mut windows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(window) = windows.get_mut(&network(peer)) {
            window.wrong = window.wrong.saturating_sub(1);
        }
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
            assert!(login_throttle.attempt(one, at(second)).is_ok(), "{second}");
        }
        assert!(login_throttle.attempt(one, at(59)).is_err());
        for other in ["192.0.2.2", "2001:db8::1"] {
            assert!(login_throttle.attempt(peer(other), at(59)).is_ok());
        }
        assert!(
            login_throttle.attempt(peer("::ffff:192.0.2.1"), at(59)).is_err(),
            "the same address in another spelling"
        );
        assert!(login_throttle.attempt(one, at(60)).is_ok());
    }

    #[test]
    fn right_attempt_is_not_counted_and_resets_nothing() {
        let login_throttle = LoginThrottle::default();
        for _ in 0..9 {
            login_throttle.attempt(None, at(0)).unwrap();
        }
        for _ in 0..100 {
            login_throttle.attempt(None, at(0)).unwrap();
            login_throttle.right(None);
        }
        login_throttle.attempt(None, at(0)).unwrap();
        assert!(login_throttle.attempt(None, at(0)).is_err());
    }

    #[test]
    fn ipv6_prefix_is_one_network_and_their_number_is_limited() {
        let login_throttle = LoginThrottle::default();
        for low in 0..10 {
            login_throttle.attempt(peer(&format!("2001:db8::{low:x}")), at(1)).unwrap();
        }
        assert!(login_throttle.attempt(peer("2001:db8::ffff:1"), at(1)).is_err());
        for other in 0..=u16::MAX {
            login_throttle.attempt(peer(&format!("2001:db8:1:{other:x}::1")), at(2)).unwrap();
        }
        assert_eq!(login_throttle.0.lock().unwrap().len(), MAX_NETWORKS);
        assert!(login_throttle.attempt(peer("2001:db8::1"), at(2)).is_ok(), "the oldest is forgotten");
    }
}
