//! The kitchen sink, statically partitioned, through a growth of everything: its outputs are what its inputs say.

use crate::kitchen::{Counts, Kitchen};
use crate::stage::Stage;

#[test]
fn static_partitioning_keeps_all_results_right_when_everything_grows() {
    let stage = Stage::shared("kit-sink");
    let (small, large) = (Counts::all(3), Counts::all(6));
    let mut kitchen = Kitchen::new(&stage, small);
    let app = kitchen.app().metadata_age_ms(1000).start(stage.cluster);
    app.wait_tasks(small.tasks());
    kitchen.assert_internal(small);
    kitchen.add_customers(0, 3);
    kitchen.produce_round(60, small);
    kitchen.assert_outputs();

    kitchen.grow_everything(large);
    app.wait_tasks(large.tasks());
    kitchen.add_customers(3, 6);
    kitchen.produce_round(60, large);
    kitchen.assert_outputs();
    assert_eq!(app.exceptions(), Vec::<String>::new());
}
