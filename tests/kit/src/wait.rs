//! Waiting for a condition. The only place of the test suite that pauses.

use std::fmt::Display;
use std::thread;
use std::time::{Duration, Instant};

/// Long enough for anything a healthy test waits for on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(180);

const PAUSE: Duration = Duration::from_millis(20);

/// Asks `probe` again and again until it answers, and panics with `what` once `deadline` has passed.
#[track_caller]
pub fn until<T>(deadline: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    until_ok(deadline, what, || probe().ok_or("nothing yet"))
}

/// Like [`until`], for a probe that says what it sees while the condition does not hold; the panic repeats the last such answer.
#[track_caller]
pub fn until_ok<T, S: Display>(deadline: Duration, what: &str, mut probe: impl FnMut() -> Result<T, S>) -> T {
    let start = Instant::now();
    loop {
        match probe() {
            Ok(value) => return value,
            Err(seen) if start.elapsed() >= deadline => panic!("waited {deadline:?} for {what}; last seen: {seen}"),
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
