use super::*;
use crate::http::Metrics;
use crate::kafka::port::ErrorClass;

#[test]
fn news_of_the_leader_do_not_hide_that_the_brokers_are_silent() {
    let shared = Shared::new(Metrics::new().unwrap());
    let metrics = shared.metrics().application("shop", "shop-partition-autoscaler");
    let mut reporter = Reporter::new(&shared, metrics, "host:1", "shop", true, "config", &[]);
    let last_error = || shared.applications().remove(0).last_error;
    let silent = || Err(KafkaError::new(ErrorClass::TimedOut, "did not answer"));
    reporter.contact(silent());
    reporter.following(&Memory::default(), true);
    assert_eq!(last_error().as_deref(), Some("did not answer"));
    reporter.contact(Ok(()));
    assert_eq!(last_error(), None);

    // What a leader met is over with its office; the next contact tells anew.
    reporter.leading();
    reporter.contact(silent());
    reporter.following(&Memory::default(), true);
    assert_eq!(last_error(), None);
    reporter.contact(silent());
    assert_eq!(last_error().as_deref(), Some("did not answer"));
}
