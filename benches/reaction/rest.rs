//! Memory and processor time of a loop that watches and has nothing to do.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use kit::Cluster;

use crate::subject::{Application, Kind, Subject};

/// Before the measurement, so that what a start costs is not counted.
const WARM_UP: Duration = Duration::from_secs(5);

/// Figures at rest for one number of topics.
pub struct Rest {
    /// Topics watched.
    pub topics: usize,
    /// For each of [`Kind::BOTH`].
    pub costs: [Cost; 2],
}

/// What one process costs.
pub struct Cost {
    /// Resident memory in MB.
    pub memory: f64,
    /// Percent of one core.
    pub processor: f64,
}

/// Lets both loops watch the same topics at the same time.
pub fn measure(cluster: &Cluster, topics: usize, time: Duration) -> Rest {
    let application = Application::new(&format!("rest-{topics}"), topics);
    application.create(cluster);
    let subjects = Kind::BOTH.map(|kind| Subject::start(kind, cluster, &application));
    thread::sleep(WARM_UP);
    let before = subjects.each_ref().map(|subject| (Instant::now(), busy(subject.pid())));
    eprintln!("at rest with {topics} topics: {} s", time.as_secs());
    thread::sleep(time);
    let mut costs = subjects.iter().zip(before).map(|(subject, (start, busy_before))| Cost {
        memory: resident(subject.pid()),
        processor: (busy(subject.pid()) - busy_before).as_secs_f64() / start.elapsed().as_secs_f64() * 100.0,
    });
    let costs = [(); 2].map(|()| costs.next().expect("as many as there are loops"));
    Rest { topics, costs }
}

/// Time on a processor of all living threads, to the nanosecond.
fn busy(pid: i32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs").flatten();
    let times = threads.filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(times.sum())
}

fn resident(pid: i32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("a line as Linux writes it");
    kib * 1024.0 / 1e6
}
