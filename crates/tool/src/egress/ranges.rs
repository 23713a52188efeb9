//! Which addresses are on the public internet. Everything else belongs to somebody's inside: this machine, its
//! network, its cloud provider. For IPv6 only what is assigned for global use counts as public, so a new special range
//! is closed until somebody opens it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 networks that are not public, with the length of their prefix.
const INSIDE_V4: &[([u8; 4], u32)] = &[
    // "This network"; on many systems another way to say loopback.
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    // Carrier-grade NAT; some clouds keep their metadata service here.
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    // Azure's platform service, which looks public and is not.
    ([168, 63, 129, 16], 32),
    // Link-local, with the metadata service of most clouds.
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // Multicast, then reserved and broadcast.
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// Global unicast; all other IPv6 is closed, but for the ways to write an IPv4 address.
const GLOBAL_V6: ([u16; 8], u32) = ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Parts of global unicast that are not public.
const INSIDE_V6: &[([u16; 8], u32)] = &[
    // Protocol assignments, among them Teredo and ORCHID.
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23),
    // Documentation.
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20),
];

/// Prefixes behind which an IPv4 address hides, and the bit it starts at. The address is judged in its place.
const CARRIERS: &[([u16; 8], u32, u32)] = &[
    // Mapped.
    ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, 96),
    // NAT64.
    ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, 96),
    // 6to4.
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, 16),
];

/// Whether an address belongs to the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(network, length): &([u8; 4], u32)| {
        let shift = 32 - length;
        u32::from(address) >> shift == u32::from_be_bytes(*network) >> shift
    };
    !INSIDE_V4.iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    for (prefix, length, start) in CARRIERS {
        if within_v6(address, prefix, *length) {
            // Keeps the 32 bits after `start`.
            let carried = (u128::from(address) << start) >> 96;
            return u32::try_from(carried).is_ok_and(|bits| is_public_v4(Ipv4Addr::from(bits)));
        }
    }
    within_v6(address, &GLOBAL_V6.0, GLOBAL_V6.1)
        && !INSIDE_V6.iter().any(|(network, length)| within_v6(address, network, *length))
}

fn within_v6(address: Ipv6Addr, network: &[u16; 8], length: u32) -> bool {
    let shift = 128 - length;
    u128::from(address) >> shift == u128::from(Ipv6Addr::from(*network)) >> shift
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// The first and the last address of every closed range.
    const INSIDE: &[&str] = &[
        "0.0.0.0",
        "0.255.255.255",
        "10.0.0.0",
        "10.255.255.255",
        "100.64.0.0",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "168.63.129.16",
        "169.254.0.0",
        "169.254.169.254",
        "169.254.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.0",
        "192.168.255.255",
        "198.18.0.0",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.1.2.3",
        "::ffff:169.254.169.254",
        "64:ff9b::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::808:808",
        "100::1",
        "2001::1",
        "2001:1ff:ffff::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2002:c0a8:101::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff:ffff::1",
        "fe80::1",
        "febf::1",
        "fec0::1",
        "ff02::1",
    ];

    /// Neighbours of the closed ranges, and well-known public hosts.
    const PUBLIC: &[&str] = &[
        "1.0.0.0",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "169.253.255.255",
        "169.255.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2002:808:808::1",
        "2606:4700::1111",
        "3ffe::1",
    ];

    #[test]
    fn the_inside_is_closed_and_the_internet_is_open() {
        for text in INSIDE {
            assert!(!is_public(text.parse().unwrap()), "{text} must be refused");
        }
        for text in PUBLIC {
            assert!(is_public(text.parse().unwrap()), "{text} must be allowed");
        }
    }
}
