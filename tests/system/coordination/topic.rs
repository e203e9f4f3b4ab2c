//! The coordinator topic: created once, checked, never changed.

use std::thread;

use kit::{Cluster, block_on};
use partition_autoscaler::kafka::port::ErrorClass;
use rdkafka::admin::{AdminOptions, NewTopic, TopicReplication};

use super::{TIMEOUT, coordination};

#[test]
fn it_is_created_once_however_many_ask() {
    let cluster = Cluster::builder().nodes(3).start();
    let coordination = coordination(&cluster.bootstrap(), "topic-race");
    let topics: Vec<_> = thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| coordination.ensure_topic(TIMEOUT).unwrap())).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(topics.iter().filter(|topic| topic.created).count(), 1);
    assert!(topics.iter().all(|topic| topic.id.is_some() && topic.id == topics[0].id), "{topics:?}");
    let again = coordination.ensure_topic(TIMEOUT).unwrap();
    assert_eq!((again.id, again.created), (topics[0].id, false));

    cluster.admin().delete(&[coordination.name()]);
    let anew = coordination.ensure_topic(TIMEOUT).unwrap();
    assert!(anew.created && anew.id != again.id, "{anew:?}");
}

#[test]
fn what_is_wrong_with_it_is_named_and_not_changed() {
    let cluster = Cluster::shared();
    let admin = cluster.admin();
    for (application, policy) in [("topic-delete", "delete"), ("topic-both", "compact,delete")] {
        let coordination = coordination(&cluster.bootstrap(), application);
        let topic = NewTopic::new(coordination.name(), 1, TopicReplication::Fixed(1)).set("cleanup.policy", policy);
        block_on(admin.client().create_topics(&[topic], &AdminOptions::new())).unwrap();
        admin.wait_counts(&[(coordination.name(), 1)]);
        for _ in 0..2 {
            let error = coordination.ensure_topic(TIMEOUT).unwrap_err();
            assert_eq!(error.class, ErrorClass::Config);
            for part in [coordination.name(), &format!("cleanup.policy={policy},"), "set it to compact"] {
                assert!(error.message.contains(part), "{part:?} is missing in: {error}");
            }
        }
    }
}
