//! Which interfaces carry what the user works over: they are left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Routes that are read at most.
const ROUTES_MAX: usize = 100_000;

/// The interfaces of default routes and of the ways to `sessions`, the addresses that the user
/// works from, each with what it carries. The texts are those of `/proc/net/route` and
/// `/proc/net/ipv6_route`; lines of another form are passed over.
pub fn carriers(
    ipv4: &str,
    ipv6: &str,
    sessions: &BTreeSet<IpAddr>,
) -> BTreeMap<String, &'static str> {
    let mut carriers = BTreeMap::new();
    let mut routes: Vec<Route> = ipv4.lines().skip(1).take(ROUTES_MAX).filter_map(four).collect();
    routes.extend(ipv6.lines().take(ROUTES_MAX).filter_map(six));
    for route in routes.iter().filter(|route| route.prefix == 0 && route.interface != "lo") {
        carriers.insert(route.interface.clone(), "a default route");
    }
    for (address, version) in sessions.iter().copied().map(bits) {
        let leads = |route: &&Route| {
            let differs = address ^ route.destination;
            route.version == version && differs.checked_shr(128 - route.prefix).unwrap_or(0) == 0
        };
        let longest = routes.iter().filter(leads).map(|route| route.prefix).max();
        // Addresses of a single link have a route on each.
        let ways = routes.iter().filter(leads).filter(|route| Some(route.prefix) == longest);
        carriers.extend(ways.map(|route| (route.interface.clone(), "your own session")));
    }
    carriers
}

/// Destinations of both versions are the highest bits.
struct Route {
    version: u8,
    destination: u128,
    prefix: u32,
    interface: String,
}

fn bits(address: IpAddr) -> (u128, u8) {
    match address.to_canonical() {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 4),
        IpAddr::V6(address) => (address.to_bits(), 6),
    }
}

/// Numbers stand there as the machine has them in memory: the first octet lowest.
fn four(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok().map(u32::swap_bytes);
    let (destination, version) = bits(Ipv4Addr::from_bits(number(1)?).into());
    let interface = (*words.first()?).to_owned();
    Some(Route { version, destination, prefix: number(7)?.leading_ones(), interface })
}

/// Rejecting routes stand there, too, on the loopback.
fn six(line: &str) -> Option<Route> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let destination = u128::from_str_radix(words.first()?, 16).ok()?;
    let prefix = u32::from_str_radix(words.get(1)?, 16).ok().filter(|prefix| *prefix <= 128)?;
    let (destination, version) = bits(Ipv6Addr::from_bits(destination).into());
    Some(Route { version, destination, prefix, interface: (*words.get(9)?).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: &str = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n\
                        eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
                        eth1 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
                        eth2 0000A8C0 00000000 0001 0 0 0 0000FFFF 0 0 0\n";
    const SIX: &str = "fd000000000000000000000000000000 40 00000000000000000000000000000000 00 \
                       00000000000000000000000000000000 00000100 1 0 00000001     eth3\n\
                       00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                       00000000000000000000000000000000 ffffffff 1 0 00200200       lo\n";

    #[test]
    fn default_routes_and_the_longest_prefix_to_the_session_count() {
        let names = |session: Option<&str>| {
            let sessions = session.map(|text| text.parse().unwrap()).into_iter().collect();
            carriers(FOUR, SIX, &sessions).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(names(None), ["eth0"]);
        assert_eq!(names(Some("192.0.2.7")), ["eth0", "eth1"]);
        assert_eq!(names(Some("192.168.3.4")), ["eth0", "eth2"]);
        assert_eq!(names(Some("::ffff:192.168.3.4")), ["eth0", "eth2"]);
        assert_eq!(names(Some("8.8.8.8")), ["eth0"]);
        assert_eq!(names(Some("fd00::5")), ["eth0", "eth3"]);
    }

    #[test]
    fn other_lines_are_passed_over() {
        let odd = "x\ny z\nw g g g g g g g g\n00 81 0 0 0 0 0 0 0 eth9\n\n";
        assert!(
            carriers("h\nx\ny z\n", odd, &BTreeSet::from(["1.2.3.4".parse().unwrap()])).is_empty()
        );
    }
}
