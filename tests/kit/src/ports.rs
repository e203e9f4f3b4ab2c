//! Free loopback ports.

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::TcpListener;

const LOWEST: u16 = 10_000;

/// `count` ports nobody listens on.
///
/// They lie below the range the kernel picks source ports from: a client that keeps dialling a stopped broker on a port of
/// that range can end up connected to itself and so occupy the port. Another process may still take one before the broker
/// does, so whoever starts a broker has to be ready to start it again with other ports.
pub fn free(count: usize) -> Vec<u16> {
    let mut held: Vec<TcpListener> = Vec::new();
    let mut tried = HashSet::new();
    let highest = lowest_source_port();
    while held.len() < count {
        let random = RandomState::new().hash_one(tried.len());
        let port = LOWEST + u16::try_from(random % u64::from(highest - LOWEST)).expect("smaller than a port number");
        assert!(tried.len() < 10_000, "no {count} free ports between {LOWEST} and {highest}");
        if tried.insert(port) {
            held.extend(TcpListener::bind(("127.0.0.1", port)));
        }
    }
    held.iter().map(|listener| listener.local_addr().expect("a bound socket").port()).collect()
}

fn lowest_source_port() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let lowest = range.split_whitespace().next().and_then(|low| low.parse().ok());
    lowest.filter(|low| *low > LOWEST + 1_000).unwrap_or(32_768)
}
