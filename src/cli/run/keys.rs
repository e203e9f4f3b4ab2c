//! Looks, beside the loop, at how keys are spread over the topics that feed state
//! (`partition.autoscaling.static.partitioning.check`).

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use tracing::{debug, info, warn};

use crate::autoscaler::driver::Control;
use crate::cli::live;
use crate::config::Settings;
use crate::config::settings::StaticCheck;
use crate::plan::partitioner::Keys;

/// Pauses before each look; the last one is repeated. A topic that has shown its partitioner is not looked at again: after a growth
/// old records would lie where the old count put them, and speak for a partitioner that is not there.
const PAUSES: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(30), Duration::from_secs(120), Duration::from_secs(600)];

/// Samples until every topic has shown its partitioner. Ends with the process.
pub fn follow(settings: Settings, control: Sender<Control>) {
    if settings.static_check == StaticCheck::Off {
        return;
    }
    thread::spawn(move || {
        let mut known: BTreeMap<String, Keys> = BTreeMap::new();
        let mut pauses = PAUSES.into_iter();
        let mut pause = PAUSES.last().copied().unwrap_or_default();
        loop {
            pause = pauses.next().unwrap_or(pause);
            thread::sleep(pause);
            let news = match live::observe(&settings) {
                Ok(application) => live::sample_keys(&settings, &application, &known),
                Err(failure) => {
                    debug!(application_id = settings.application_id, "keys are not sampled now: {}", failure.message);
                    continue;
                }
            };
            for (topic, keys) in &news {
                tell(&settings, topic, keys, known.get(topic));
            }
            known.extend(news.clone());
            let all_known = !known.is_empty() && known.values().all(|keys| !matches!(keys, Keys::Unknown(_)));
            if control.send(Control::Keys(news)).is_err() || all_known {
                return;
            }
        }
    });
}

fn tell(settings: &Settings, topic: &str, keys: &Keys, before: Option<&Keys>) {
    let application_id = &settings.application_id;
    if before == Some(keys) {
        return;
    }
    match keys {
        Keys::MoveWhenGrown => warn!(
            application_id,
            topic,
            "keys of {topic} lie where Kafka's default partitioner puts them: growth would send them to other partitions, away \
             from their state; growth is safe only with a static partitioner"
        ),
        Keys::Placed => info!(application_id, topic, "keys of {topic} are not placed by Kafka's default partitioner"),
        Keys::Unknown(why) if settings.static_check == StaticCheck::Enforce => {
            warn!(application_id, topic, "{topic} may grow although it cannot be told yet whether its keys would move: {why}");
        }
        Keys::Unknown(why) => debug!(application_id, topic, "whether keys of {topic} would move cannot be told yet: {why}"),
    }
}
