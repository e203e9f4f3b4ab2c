//! Memory and processor time of this process, from `/proc`.

use std::fs;

/// Ticks of `/proc/self/stat` in a second: fixed at 100 in Linux' interface to programs.
const TICKS: f64 = 100.0;

/// Resident memory in bytes; `None` where the system does not tell.
pub fn resident_bytes() -> Option<i64> {
    resident(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Processor time, user and system, in seconds; `None` where the system does not tell.
pub fn cpu_seconds() -> Option<f64> {
    cpu(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn resident(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: i64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn cpu(stat: &str) -> Option<f64> {
    // The name of the program, in parentheses, may hold anything; user and system time are fields 14 and 15, so 12th and 13th after it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ').skip(11);
    let (user, system): (f64, f64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) / TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        assert_eq!(resident("VmHWM:\t  9000 kB\nVmRSS:\t    7100 kB\n"), Some(7100 * 1024));
        assert_eq!(resident("Name: x"), None);
        assert_eq!(cpu("42 (a) b) c) S 1 1 1 0 -1 4 100 0 0 0 250 50 0 0 20 0 7"), Some(3.0));
        assert_eq!(cpu("garbage"), None);
        assert!(resident_bytes().is_some_and(|bytes| bytes > 0));
        assert!(cpu_seconds().is_some());
    }
}
