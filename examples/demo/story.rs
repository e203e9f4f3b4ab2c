//! The two stories: with the sidecar, and without it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kit::{App, Cluster, Sidecar};

use crate::load::Load;
use crate::narrator::Narrator;
use crate::stage::{self, AFTER, APPLICATION, BEFORE, COUNTS, METADATA_AGE_MS, ORDERS, told};

/// How long the load runs before and after, so that there is something to count.
const SOME_LOAD: Duration = Duration::from_secs(2);

/// The input grows, the internal topics follow, the application lives.
pub fn with(narrator: &Narrator, keep: bool) -> Result<(), String> {
    let program = stage::built()?;
    narrator.say("A Kafka topic grows, and the stock Kafka Streams application that reads it lives.\n");
    let cluster = stage::broker(narrator)?;
    let app = stage::application(narrator, &cluster);
    let watching = stage::sidecar(narrator, &program, &cluster, &app)?;
    let internal = internal_topics(&cluster);
    let load = some_load(narrator, &cluster);

    let grown = grow(narrator, &cluster);
    load.widen(AFTER);
    narrator.begin("waiting for the internal topics to follow");
    let followed = Followed::wait(&watching.sidecar)?;
    if followed.topics != internal.iter().map(|topic| (topic.clone(), AFTER as u64)).collect() {
        return Err(format!("{internal:?} should have followed to {AFTER}, but this is what grew: {:?}", followed.topics));
    }
    narrator.done(&format!(
        "{} followed, {BEFORE} → {AFTER}, with {}",
        internal.join(" and "),
        if followed.requests == 1 { "one request".to_owned() } else { format!("{} requests", followed.requests) }
    ));
    narrator.say(&format!(
        "  {} ms after the sidecar saw the growth, and at most {} ms after the growth itself",
        followed.reaction_ms, followed.gap_ms
    ));

    narrator.begin(&format!("waiting for the application to notice (it looks every {} s here)", METADATA_AGE_MS / 1000));
    app.wait_tasks(2 * AFTER);
    narrator.done(&format!(
        "the application took it up by itself after {:.1} s: {} tasks before, {} now",
        grown.elapsed().as_secs_f64(),
        2 * BEFORE,
        app.tasks().len()
    ));
    narrator.say(&format!(
        "  (it looks for changes every {} s in this demo, every 5 minutes by Kafka's default)",
        METADATA_AGE_MS / 1000
    ));

    narrator.begin("a little more load, then the results are counted again");
    thread::sleep(SOME_LOAD);
    check(narrator, &cluster, &app, load)?;
    if keep {
        stay(narrator, &watching.sidecar)?;
    } else {
        narrator.end();
        narrator.say("\nThe same without the sidecar: cargo demo -- --without");
        narrator.say("To look around while all of it runs: cargo demo -- --keep");
    }
    Ok(())
}

/// The input grows, nobody follows, the application dies.
pub fn without(narrator: &Narrator) -> Result<(), String> {
    narrator.say("A Kafka topic grows, and the stock Kafka Streams application that reads it dies: there is no sidecar.\n");
    let cluster = stage::broker(narrator)?;
    let app = stage::application(narrator, &cluster);
    let load = some_load(narrator, &cluster);
    let grown = grow(narrator, &cluster);
    narrator.begin(&format!("waiting for the application to notice (it looks every {} s here)", METADATA_AGE_MS / 1000));
    let exception = app.wait_dead();
    drop(load);
    let (words, expected) =
        (exception.split("; caused by").next().unwrap_or_default(), "has invalid partitions: expected: 6; actual: 3");
    if !exception.contains(expected) {
        return Err(format!("the application died, but of something else: {exception}"));
    }
    narrator.end();
    narrator.say(&format!("✘ the application died after {:.1} s. Kafka's own words:\n", grown.elapsed().as_secs_f64()));
    narrator.say(&format!("  {words}\n"));
    narrator.say("The same with the sidecar, alive: cargo demo");
    Ok(())
}

fn internal_topics(cluster: &Cluster) -> Vec<String> {
    cluster.admin().internal_counts(APPLICATION).into_keys().collect()
}

fn some_load(narrator: &Narrator, cluster: &Arc<Cluster>) -> Load {
    let load = Load::start(cluster, BEFORE);
    narrator.done(&format!("{ORDERS} keep coming in, from {BEFORE} customers"));
    narrator.begin("a little load before the growth");
    thread::sleep(SOME_LOAD);
    load
}

/// When it had grown.
fn grow(narrator: &Narrator, cluster: &Cluster) -> Instant {
    cluster.admin().grow(&[(ORDERS, AFTER)]);
    let grown = Instant::now();
    narrator.say(&format!("▶ {ORDERS} grows, {BEFORE} → {AFTER}, and new customers come"));
    grown
}

/// What the sidecar tells of an expansion.
struct Followed {
    topics: BTreeMap<String, u64>,
    reaction_ms: u64,
    gap_ms: u64,
    requests: u64,
}

impl Followed {
    fn wait(sidecar: &Sidecar) -> Result<Self, String> {
        let status = sidecar.wait_status("an expansion", |status| told(status, "/last_expansion").is_object());
        let topics = told(&status, "/last_expansion/topics").as_object().into_iter().flatten();
        let topics = topics.filter_map(|(topic, count)| Some((topic.clone(), count.as_u64()?))).collect();
        let metrics = sidecar.metrics();
        let gap = metric(&metrics, "partition_autoscaler_gap_seconds_sum")?;
        let requests = metric(&metrics, "partition_autoscaler_create_partitions_requests_total")?;
        let reaction_ms = told(&status, "/last_expansion/reaction_ms").as_u64().ok_or("the status tells no reaction_ms")?;
        let gap_ms = Duration::try_from_secs_f64(gap).unwrap_or_default().as_micros().div_ceil(1000);
        Ok(Self { topics, reaction_ms, gap_ms: u64::try_from(gap_ms).unwrap_or(u64::MAX), requests: requests as u64 })
    }
}

/// The value of a family with one set of labels.
fn metric(metrics: &str, family: &str) -> Result<f64, String> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(family)?.strip_prefix('{'));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.ok_or_else(|| format!("/metrics tells no {family}"))
}

/// What the application has counted is what the book of the load says.
fn check(narrator: &Narrator, cluster: &Cluster, app: &App, load: Load) -> Result<(), String> {
    let expected = load.stop();
    let repartition = internal_topics(cluster).into_iter().find(|topic| topic.ends_with("-repartition"));
    let repartition = repartition.ok_or("the repartition topic is gone")?;
    cluster.admin().wait_caught_up(APPLICATION, &[ORDERS, &repartition]);
    let counted = cluster.admin().read_table(COUNTS);
    let wanted: BTreeMap<String, String> =
        expected.iter().map(|(customer, count)| (customer.clone(), count.to_string())).collect();
    if counted != wanted {
        return Err(format!("the counts are wrong: {counted:?} instead of {wanted:?}"));
    }
    if let Some(exception) = app.exceptions().pop() {
        return Err(format!("a thread of the application died: {exception}"));
    }
    narrator.done(&format!(
        "{} orders of {} customers, {} of them new and in the new partitions: all counts agree with a recount",
        expected.values().sum::<u64>(),
        expected.len(),
        AFTER - BEFORE
    ));
    Ok(())
}

/// Keeps everything running until Ctrl-C.
fn stay(narrator: &Narrator, sidecar: &Sidecar) -> Result<(), String> {
    narrator.end();
    narrator.say(&format!("\nAll of it runs until Ctrl-C: {0}/metrics, {0}/v1/status, {0}/v1/plan", sidecar.url()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let interrupted = runtime.and_then(|runtime| runtime.block_on(tokio::signal::ctrl_c()));
    interrupted.map_err(|error| format!("Ctrl-C cannot be waited for: {error}"))
}
