//! The addresses that a request may connect to. The blocks come from IANA's special-purpose registries (RFC 6890 and its
//! updates), with the metadata addresses of clouds.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Reach;

/// A block of IPv4 addresses: the first address and the prefix length.
type Block4 = (Ipv4Addr, u32);

/// A block of IPv6 addresses.
pub(super) type Block6 = (Ipv6Addr, u32);

/// Shared addresses, behind the NAT of a carrier; metadata of one cloud.
const SHARED_4: Block4 = (Ipv4Addr::new(100, 64, 0, 0), 10);

/// The wire server of one cloud. It is not in IANA's registry.
const WIRE_SERVER: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

/// Blocks that are not public internet, although some of them are routed.
const SPECIAL_4: [Block4; 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),  // This network; 0.0.0.0 is this machine.
    (Ipv4Addr::new(10, 0, 0, 0), 8), // Private.
    SHARED_4,
    (Ipv4Addr::new(127, 0, 0, 0), 8), // Loopback.
    (WIRE_SERVER, 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // Link-local: metadata of most clouds.
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // Private.
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // Protocol assignments.
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // Documentation.
    (Ipv4Addr::new(192, 31, 196, 0), 24), // AS112: black holes for reverse lookups.
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // Relays of 6to4.
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // Private.
    (Ipv4Addr::new(192, 175, 48, 0), 24), // AS112.
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // Benchmarks.
    (Ipv4Addr::new(198, 51, 100, 0), 24), // Documentation.
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // Documentation.
    (Ipv4Addr::new(224, 0, 0, 0), 3),     // Multicast, reserved, broadcast.
];

/// Blocks within IPv6's internet block that are not public internet.
const SPECIAL_6: [Block6; 5] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // Protocol assignments: Teredo, benchmarks, ORCHID.
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // Documentation.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4, which carries any IPv4 address.
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48), // AS112.
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // Documentation.
];

/// The internet block. Everything else is special, reserved, or carries an IPv4 address: mapped, compatible, or NAT64
/// (`64:ff9b::` and `64:ff9b:1::`), whose translator can reach addresses that the host must not reach.
const INTERNET_6: Block6 = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The operator's own network and this machine.
const OWN_4: [Block4; 4] = [
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];

/// The same for IPv6: loopback and unique local addresses.
const OWN_6: [Block6; 2] = [(Ipv6Addr::LOCALHOST, 128), (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7)];

/// Clouds' metadata at unique local addresses.
const METADATA_6: [Block6; 3] = [
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0), 32),
];

/// Whether an address is public internet and carries no other address.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_4.iter().any(|block| within_4(address, *block)),
        IpAddr::V6(address) => {
            within_6(address, INTERNET_6) && !SPECIAL_6.iter().any(|block| within_6(address, *block))
        }
    }
}

/// Whether a request may connect to an address.
#[must_use]
pub fn may_reach(address: IpAddr, reach: Reach) -> bool {
    let own = || match address {
        IpAddr::V4(address) => OWN_4.iter().any(|block| within_4(address, *block)),
        IpAddr::V6(address) => {
            let within = |blocks: &[Block6]| blocks.iter().any(|block| within_6(address, *block));
            within(&OWN_6) && !within(&METADATA_6)
        }
    };
    is_public(address) || (reach == Reach::Private && own())
}

/// Why no request may connect to an address, in words that follow its name.
pub(super) fn why_unreachable(address: IpAddr) -> String {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    let is_metadata = match address {
        IpAddr::V4(address) => address == WIRE_SERVER,
        IpAddr::V6(address) => METADATA_6.iter().any(|block| within_6(address, *block)),
    };
    match address {
        _ if is_link_local => "it is a link-local address, where clouds serve the credentials of a machine".to_owned(),
        _ if is_metadata => "a cloud serves the metadata of its machines there".to_owned(),
        IpAddr::V4(address) if within_4(address, SHARED_4) => {
            "it is a shared address of carriers and clouds (100.64.0.0/10)".to_owned()
        }
        IpAddr::V6(address) if let Some(inner) = address.to_ipv4_mapped() => {
            format!("it carries an IPv4 address; name {inner} itself")
        }
        _ => "it is reserved, and neither a public address nor one of a private network".to_owned(),
    }
}

fn within_4(address: Ipv4Addr, (first, bits): Block4) -> bool {
    (address.to_bits() ^ first.to_bits()).leading_zeros() >= bits
}

pub(super) fn within_6(address: Ipv6Addr, (first, bits): Block6) -> bool {
    (address.to_bits() ^ first.to_bits()).leading_zeros() >= bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the first and the last address of each block and their neighbours.
    #[test]
    fn the_edges_of_every_block_match_the_registry() {
        let within = [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("168.63.129.16", "168.63.129.16"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.31.196.0", "192.31.196.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("192.175.48.0", "192.175.48.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
            ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ];
        let parse = |text: &str| text.parse::<IpAddr>().expect(text);
        let moved = |address: IpAddr, by: i8| match address {
            IpAddr::V4(address) => {
                let bits = address.to_bits().checked_add_signed(by.into())?;
                Some(IpAddr::V4(Ipv4Addr::from_bits(bits)))
            }
            IpAddr::V6(address) => {
                Some(IpAddr::V6(Ipv6Addr::from_bits(address.to_bits().checked_add_signed(by.into())?)))
            }
        };
        for (first, last) in within.map(|(first, last)| (parse(first), parse(last))) {
            assert!(!is_public(first) && !is_public(last), "{first} {last}");
            for neighbour in [moved(first, -1), moved(last, 1)].into_iter().flatten() {
                let in_another = within.iter().any(|(a, z)| (parse(a)..=parse(z)).contains(&neighbour));
                assert_eq!(is_public(neighbour), !in_another, "{neighbour} beside {first}..={last}");
            }
        }
    }

    #[test]
    fn well_known_addresses_and_their_disguises() {
        let rows = [
            // (address, public, private)
            ("1.1.1.1", true, true),
            ("93.184.215.14", true, true),
            ("2606:4700:4700::1111", true, true),
            ("127.0.0.1", false, true),
            ("10.1.2.3", false, true),
            ("172.16.0.1", false, true),
            ("192.168.1.1", false, true),
            ("::1", false, true),
            ("fd12:3456::1", false, true),
            ("0.0.0.0", false, false),
            ("::", false, false),
            ("169.254.169.254", false, false),
            ("169.254.170.2", false, false),
            ("100.100.100.200", false, false),
            ("168.63.129.16", false, false),
            ("192.0.0.192", false, false),
            ("fd00:ec2::254", false, false),
            ("fd20:ce::254", false, false),
            ("fd00:42::42", false, false),
            ("fe80::1", false, false),
            ("fec0::1", false, false),
            ("ff02::1", false, false),
            ("224.0.0.1", false, false),
            ("255.255.255.255", false, false),
            ("240.0.0.1", false, false),
            ("100.64.0.1", false, false),
            // An IPv4 address in an IPv6 address: mapped, compatible, NAT64, local NAT64, 6to4, Teredo, translated.
            ("::ffff:127.0.0.1", false, false),
            ("::ffff:1.1.1.1", false, false),
            ("::127.0.0.1", false, false),
            ("64:ff9b::7f00:1", false, false),
            ("64:ff9b::1.1.1.1", false, false),
            ("64:ff9b:1::a9fe:a9fe", false, false),
            ("2002:7f00:1::", false, false),
            ("2001:0:7f00:1::", false, false),
            ("::ffff:0:127.0.0.1", false, false),
            ("100::1", false, false),
            ("5f00::1", false, false),
        ];
        for (text, public, private) in rows {
            let address = text.parse().expect(text);
            assert_eq!(is_public(address), public, "{text}");
            assert_eq!(may_reach(address, Reach::Public), public, "{text}");
            assert_eq!(may_reach(address, Reach::Private), private, "{text}");
        }
    }
}
