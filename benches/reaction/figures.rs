//! What a growth gives, and percentiles of many.

use std::time::{Duration, SystemTime};

/// When a loop did what about one growth.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// The answer with the growth was there.
    pub seen: SystemTime,
    /// The request went out.
    pub requested: SystemTime,
    /// Its answer came.
    pub replied: SystemTime,
    /// All counts were read back.
    pub verified: SystemTime,
}

/// The time from a growth to verified counts, in parts.
#[derive(Clone, Copy, Debug)]
pub struct Reaction {
    /// From the growth until the loop saw it; none if it saw it before the one who grew had the answer.
    pub poll_wait: Duration,
    /// From sight to request.
    pub plan: Duration,
    /// The round trip of CreatePartitions.
    pub request: Duration,
    /// From its answer to verified counts.
    pub verification: Duration,
}

impl Reaction {
    /// From when the growth was answered, and what the loop did then.
    pub fn new(grown: SystemTime, moments: Moments) -> Self {
        let between = |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap_or_default();
        Self {
            poll_wait: between(grown, moments.seen),
            plan: between(moments.seen, moments.requested),
            request: between(moments.requested, moments.replied),
            verification: between(moments.replied, moments.verified),
        }
    }

    /// All parts.
    pub fn whole(&self) -> Duration {
        self.poll_wait + self.plan + self.request + self.verification
    }

    /// What is neither the wait for the next look nor the broker's work on the request.
    pub fn own(&self) -> Duration {
        self.plan + self.verification
    }
}

/// Some durations, in milliseconds, sorted.
pub struct Sample(Vec<f64>);

impl Sample {
    /// One part of each reaction.
    pub fn of(reactions: &[Reaction], part: fn(&Reaction) -> Duration) -> Self {
        let mut millis: Vec<f64> = reactions.iter().map(|reaction| part(reaction).as_secs_f64() * 1000.0).collect();
        millis.sort_by(f64::total_cmp);
        Self(millis)
    }

    /// The least value that at least this share of all does not exceed.
    pub fn percentile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }

    /// How many lie in `from..to`.
    pub fn between(&self, from: f64, to: f64) -> usize {
        self.0.iter().filter(|value| (from..to).contains(*value)).count()
    }
}
