//! Orders that keep coming, and the book that is kept of them.

use std::collections::BTreeMap;
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kit::{Cluster, Record};

use crate::stage::ORDERS;

const BATCH: usize = 60;
const PAUSE: Duration = Duration::from_millis(100);

/// One customer for each partition: the number in front is the partition that the static partitioner keeps it in, for ever.
const CUSTOMERS: [&str; 6] = ["0:anna", "1:boris", "2:carla", "3:daniel", "4:elif", "5:farid"];

/// A running load; ends when dropped.
pub struct Load {
    partitions: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<&'static str>>>,
}

impl Load {
    /// Orders from as many customers as `orders` has partitions, spread over all of these.
    pub fn start(cluster: &Arc<Cluster>, partitions: usize) -> Self {
        let partitions = Arc::new(AtomicUsize::new(partitions));
        let stop = Arc::new(AtomicBool::new(false));
        let (cluster, width, stopped) = (Arc::clone(cluster), Arc::clone(&partitions), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let mut book = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let customers = CUSTOMERS.into_iter().take(width.load(Ordering::Relaxed));
                let batch: Vec<&str> = customers.clone().cycle().take(BATCH).collect();
                cluster.admin().produce(ORDERS, &records(&batch, book.len(), customers.count()));
                book.extend(batch);
                thread::sleep(PAUSE);
            }
            book
        });
        Self { partitions, stop, thread: Some(thread) }
    }

    /// From now on there are new customers and new partitions as well.
    pub fn widen(&self, partitions: usize) {
        self.partitions.store(partitions, Ordering::Relaxed);
    }

    /// Stops, and counts from the book alone what each customer has ordered.
    pub fn stop(mut self) -> BTreeMap<String, u64> {
        self.stop.store(true, Ordering::Relaxed);
        let book = self.thread.take().map(JoinHandle::join);
        let book = book.map_or_else(Vec::new, |book| book.unwrap_or_else(|problem| panic::resume_unwind(problem)));
        let mut counts = BTreeMap::new();
        for customer in book {
            *counts.entry(customer.to_owned()).or_default() += 1;
        }
        counts
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // what went wrong there is not why this ends
        }
    }
}

/// An order lies in the partition that its own key names, not in that of its customer: that is what repartitioning is for.
fn records(customers: &[&str], first: usize, partitions: usize) -> Vec<Record> {
    let numbered = customers.iter().zip(first..);
    numbered
        .map(|(customer, id)| Record::new(format!("{}:{id}", id / 2 % partitions), format!("{customer},book")).to_own())
        .collect()
}
