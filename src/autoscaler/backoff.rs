//! How long to wait before asking again.

use std::time::Duration;

/// First pause.
const FIRST: Duration = Duration::from_millis(100);
/// Longest pause, also the pace where only a person can help (a missing right, a policy).
pub const CEILING: Duration = Duration::from_secs(10);

/// Exponential back-off with jitter: attempt 0 waits about 100 ms, each further one twice as long, 10 s at the most.
///
/// `jitter` in `0.0..1.0` shortens the pause by up to a quarter, so that sidecars that failed together do not return together.
pub fn pause(attempt: u32, jitter: f64) -> Duration {
    let full = FIRST.saturating_mul(2u32.saturating_pow(attempt.min(16))).min(CEILING);
    full.mul_f64(1.0 - 0.25 * jitter.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_the_ceiling() {
        let pauses: Vec<u128> = (0..9).map(|attempt| pause(attempt, 0.0).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(pause(u32::MAX, 0.0), CEILING);
    }

    #[test]
    fn jitter_only_shortens() {
        assert_eq!(pause(0, 1.0), Duration::from_millis(75));
        assert_eq!(pause(0, 7.0), Duration::from_millis(75));
    }
}
