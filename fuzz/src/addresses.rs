//! The address filter: only public addresses pass. The expected blocks are copied from the registries of IANA with
//! their first and last address, and do not come from the tested code.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use capabilities::http::is_public;

/// Blocks that are not globally reachable: special-purpose, multicast and reserved ones.
const UNREACHABLE: [(&str, &str); 30] = [
    ("0.0.0.0", "0.255.255.255"),
    ("10.0.0.0", "10.255.255.255"),
    ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"),
    // The wire server of a cloud is in no registry.
    ("168.63.129.16", "168.63.129.16"),
    ("169.254.0.0", "169.254.255.255"),
    ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.8"),
    ("192.0.0.11", "192.0.0.255"),
    ("192.0.2.0", "192.0.2.255"),
    ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"),
    ("198.18.0.0", "198.19.255.255"),
    ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"),
    ("224.0.0.0", "239.255.255.255"),
    ("240.0.0.0", "255.255.255.255"),
    ("::", "::1"),
    ("::ffff:0.0.0.0", "::ffff:255.255.255.255"),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
    ("100::", "100::1:ffff:ffff:ffff:ffff"),
    ("2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:2::", "2001:2:0:ffff:ffff:ffff:ffff:ffff"),
    ("2001:10::", "2001:1f:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("fe80::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
];

/// Blocks of a registry that are reachable or unspecified. The filter may refuse or allow them.
const EITHER: [(&str, &str); 6] = [
    ("192.0.0.9", "192.0.0.10"),
    ("192.31.196.0", "192.31.196.255"),
    ("192.52.193.0", "192.52.193.255"),
    ("192.175.48.0", "192.175.48.255"),
    ("2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"),
];

type Block = (IpAddr, IpAddr);

static BLOCKS: LazyLock<(Vec<Block>, Vec<Block>)> = LazyLock::new(|| {
    let address = |text: &str| text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let blocks = |table: &[(&str, &str)]| table.iter().map(|(first, last)| (address(first), address(last))).collect();
    (blocks(&UNREACHABLE), blocks(&EITHER))
});

/// Reads the input as addresses in text, one per line, and as the bytes of addresses of both kinds.
pub fn addresses(bytes: &[u8]) {
    for line in String::from_utf8_lossy(bytes).lines() {
        line.trim().parse().iter().for_each(|address| check(*address));
    }
    let (fours, _) = bytes.as_chunks::<4>();
    fours.iter().for_each(|four| check(IpAddr::from(*four)));
    let (sixteens, _) = bytes.as_chunks::<16>();
    sixteens.iter().for_each(|sixteen| check(IpAddr::from(*sixteen)));
}

fn check(address: IpAddr) {
    let (unreachable, either) = &*BLOCKS;
    let lies_in = |blocks: &[Block]| blocks.iter().any(|(first, last)| (*first..=*last).contains(&address));
    if lies_in(unreachable) || !is_global_unicast(address) {
        assert!(!is_public(address), "{address} is not public");
    } else if !lies_in(either) {
        assert!(is_public(address), "{address} is public");
    }
    if let IpAddr::V4(address) = address {
        for disguised in disguises(address) {
            assert!(!is_public(disguised.into()), "{disguised} carries {address}");
        }
    }
}

/// Whether the registry of the address space assigns it to hosts. For IPv6 this is one block.
fn is_global_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let never = address.is_unspecified() || address.is_loopback() || address.is_private();
            !(never || address.is_link_local() || address.is_multicast() || address.is_documentation())
        }
        IpAddr::V6(address) => matches!(address.octets()[0], 0x20..=0x3f),
    }
}

/// All IPv6 addresses that embed this one.
fn disguises(address: Ipv4Addr) -> [Ipv6Addr; 7] {
    let bits = u128::from(address.to_bits());
    [
        address.to_ipv6_mapped(),
        address.to_ipv6_compatible(),
        // NAT64 with the well-known prefix and with the local one; translated (SIIT).
        Ipv6Addr::from_bits((0x0064_ff9b << 96) | bits),
        Ipv6Addr::from_bits((0x0064_ff9b_0001 << 80) | bits),
        Ipv6Addr::from_bits((0xffff << 48) | bits),
        // 6to4, and Teredo, which embeds the client's address with all bits inverted.
        Ipv6Addr::from_bits((0x2002 << 112) | (bits << 80)),
        Ipv6Addr::from_bits((0x2001 << 112) | (!bits & 0xffff_ffff)),
    ]
}
