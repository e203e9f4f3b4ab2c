//! Brokers and sidecars that go away in the middle of a plan.

use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use kit::Cluster;
use kit::wait::{self, PATIENCE};

use super::{Shop, details, failures, lines, totals};
use crate::stage::wait_state;

/// A cluster whose only broker may be stopped; one test at a time has it.
fn mortal() -> MutexGuard<'static, Cluster> {
    static MORTAL: OnceLock<Mutex<Cluster>> = OnceLock::new();
    MORTAL.get_or_init(|| Mutex::new(Cluster::builder().log_requests().start())).lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_broker_that_restarts_in_mid_plan_delays_it() {
    let cluster = mortal();
    let shop = Shop::on(&cluster, "restart");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    // The sidecar stands still while the input grows, so that the broker is gone before it can act.
    sidecar.process().pause();
    shop.stage.grow(&[("orders", 6)]);
    cluster.kill(1);
    sidecar.process().resume();
    let down = sidecar.wait_status("the outage", |status| !status["applications"][0]["last_error"].is_null());
    assert!(down["applications"][0]["last_error"].as_str().unwrap().contains(&cluster.bootstrap()), "{down}");
    cluster.restart(1);
    shop.wait_all_internal(6);
    let application = wait_state(&sidecar, "Settling");
    assert!(application["last_error"].is_null(), "{application}");
    assert_eq!(failures(&sidecar), 0);
}

#[test]
fn a_broker_that_falls_silent_during_the_request_delays_it() {
    let cluster = mortal();
    let shop = Shop::on(&cluster, "silent");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 100)]);
    sidecar.wait_log("one CreatePartitions request");
    cluster.pause(1);
    sidecar.wait_log("did not answer within");
    cluster.resume(1);
    shop.wait_all_internal(100);
    wait_state(&sidecar, "Settling");
    assert_eq!(failures(&sidecar), 0);
    assert_eq!(
        lines(&sidecar, "was not grown"),
        0,
        "a request that was carried out and sent again is no refusal: {}",
        sidecar.log()
    );
}

#[test]
fn a_sidecar_that_was_killed_in_mid_plan_leaves_nothing_undone() {
    let shop = Shop::shared("killed");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    shop.stage.grow(&[("orders", 6)]);
    sidecar.wait_log("one CreatePartitions request");
    sidecar.process().kill();
    let baseline = format!("baseline.{:?}", shop.stage.topic("orders"));
    let next = shop.sidecar(&[(&baseline, "3")]);
    shop.wait_all_internal(6);
    next.wait_status("that all fits", |status| status["applications"][0]["plan"]["decision"] == "none");
    assert_eq!(failures(&next), 0);
}

#[test]
fn growth_before_the_start_needs_the_counts_before_it() {
    let shop = Shop::shared("late");
    let sidecar = shop.create(&[("orders", 6)]).sidecar(&[]);
    let blocked = wait_state(&sidecar, "Blocked");
    assert_eq!(blocked["plan"]["code"], "NO_BASELINE");
    let setting = format!("baseline.{}", shop.stage.topic("orders"));
    assert!(details(&blocked).contains(&setting), "{blocked}");
    assert_eq!(blocked["plan"]["questions"][0]["setting"], setting, "{blocked}");
    assert_eq!(shop.settled_requests(), []);
    // Stating it in the file is enough.
    let baseline = format!("baseline.{:?}", shop.stage.topic("orders"));
    sidecar.write_config(&shop.config(&[(&baseline, "3")]));
    shop.wait_all_internal(6);
    let application = wait_state(&sidecar, "Settling");
    assert_eq!(application["baseline"][shop.stage.topic("orders")], 6);
    assert_eq!(shop.settled_plans(), [totals(&[("by-orders-repartition", 6), ("orders-counts-changelog", 6)])]);
}

#[test]
fn a_changelog_that_was_left_behind_needs_no_baseline() {
    let shop = Shop::shared("left-behind");
    let sidecar = shop.create(&[("orders", 6), ("by-orders-repartition", 6)]).sidecar(&[]);
    shop.wait_all_internal(6);
    wait_state(&sidecar, "Settling");
    assert_eq!(shop.settled_plans(), [totals(&[("orders-counts-changelog", 6)])]);
}

#[test]
fn a_signal_ends_it() {
    let shop = Shop::shared("signal");
    let sidecar = shop.create(&[]).sidecar(&[]);
    wait_state(&sidecar, "Steady");
    sidecar.process().terminate();
    assert_eq!(sidecar.wait_exit().code(), Some(0));
    assert_eq!(lines(&sidecar, "stopped"), 1, "{}", sidecar.log());
    // Before there is a cluster or a topology as well.
    let unreachable = shop.sidecar(&[("bootstrap.servers", "\"127.0.0.1:1\"")]);
    unreachable.wait_log("nothing listens at 127.0.0.1:1");
    unreachable.process().terminate();
    assert_eq!(unreachable.wait_exit().code(), Some(0));
}

#[test]
fn a_signal_ends_a_leader_whose_broker_is_silent() {
    let cluster = mortal();
    let shop = Shop::on(&cluster, "silent-end");
    let sidecar = shop.create(&[]).sidecar(&[("leader.election", "\"kafka\"")]);
    wait_state(&sidecar, "Steady");
    cluster.pause(1);
    sidecar.process().terminate();
    let status = sidecar.wait_exit();
    cluster.resume(1);
    assert_eq!(status.code(), Some(0));
    assert_eq!(lines(&sidecar, "stopped"), 1, "it came to an end by itself: {}", sidecar.log());
}

/// One that only follows has nothing to ask the brokers, and has to know all the same that they are gone.
#[test]
fn leader_and_follower_tell_that_the_broker_is_silent() {
    let cluster = mortal();
    let shop = Shop::on(&cluster, "both-tell");
    let shop = shop.create(&[]);
    let both = [(); 2].map(|()| shop.sidecar(&[("leader.election", "\"kafka\"")]));
    for sidecar in &both {
        wait_state(sidecar, "Steady");
    }
    let last_error = |sidecar: &kit::Sidecar, shown: bool| {
        sidecar.wait_status("the error or its end", |status| status["applications"][0]["last_error"].is_string() == shown);
    };
    cluster.pause(1);
    both.iter().for_each(|sidecar| last_error(sidecar, true));
    cluster.resume(1);
    both.iter().for_each(|sidecar| last_error(sidecar, false));
}

#[test]
fn a_second_signal_ends_it_at_once() {
    // A broker that takes the connection and never answers, so that the sidecar is in the middle of a call.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("\"{}\"", silent.local_addr().unwrap());
    let sidecar = Shop::shared("signals").sidecar(&[("bootstrap.servers", &address)]);
    let _connection = silent.accept().unwrap();
    sidecar.process().terminate();
    sidecar.wait_log("SIGTERM asks to stop");
    // What follows at once is an echo of the first.
    wait::until(PATIENCE, "the end", || {
        sidecar.process().terminate();
        (!sidecar.process().is_alive()).then_some(())
    });
    assert_eq!(sidecar.wait_exit().code(), Some(0));
    assert_eq!(lines(&sidecar, "SIGTERM again: ending at once"), 1, "{}", sidecar.log());
    assert_eq!(lines(&sidecar, "stopped"), 0, "{}", sidecar.log());
}
