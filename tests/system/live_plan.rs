//! `plan` and `snapshot` of a live application: the same answers with and without the broker, and nothing is ever changed.

use std::fs;
use std::path::Path;
use std::process::Command;

use kit::{App, Cluster};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::documents::assert_documented;
use crate::stage::BINARY;

struct Shop {
    folder: TempDir,
}

impl Shop {
    fn new(cluster: &Cluster, app: &App, id: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("topology.txt"), app.describe()).unwrap();
        let text = format!(
            "bootstrap.servers = \"{}\"\napplication.id = \"{id}\"\ntopology.file = \"topology.txt\"\n{more}\n",
            cluster.bootstrap()
        );
        fs::write(folder.path().join("shop.toml"), text).unwrap();
        Self { folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Exit code and standard output; standard error has to be empty.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = Command::new(BINARY).args(arguments).current_dir(self.path()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }

    /// The plan of the live application, which has to be that of its snapshot, byte for byte.
    fn plan(&self, options: &[&str]) -> (i32, Value) {
        let (settings, what_if): (Vec<&str>, Vec<&str>) = options.iter().partition(|option| option.starts_with("--set="));
        let live = [&["plan", "--output=json", "--config=shop.toml"][..], &settings, &what_if].concat();
        let (code, text) = self.run(&live);
        let (snapshot_code, snapshot) = self.run(&[&["snapshot", "--config=shop.toml"][..], &settings].concat());
        assert_eq!(snapshot_code, 0);
        assert_documented("snapshot", &serde_json::from_str(&snapshot).unwrap());
        fs::write(self.path().join("s.json"), snapshot).unwrap();
        let replay = [&["plan", "--output=json", "--snapshot=s.json"][..], &settings, &what_if].concat();
        assert_eq!(self.run(&replay), (code, text.clone()), "{options:?}");
        let plan = serde_json::from_str(&text).unwrap();
        assert_documented("plan", &plan);
        (code, plan)
    }
}

/// Topic, present count and target of each change.
fn changes(plan: &Value) -> Vec<(&str, u64, u64)> {
    let change = |change: &'_ Value| (change["from"].as_u64().unwrap(), change["to"].as_u64().unwrap());
    let all = plan["changes"].as_array().unwrap();
    all.iter().map(|item| (item["topic"].as_str().unwrap(), change(item).0, change(item).1)).collect()
}

#[test]
fn a_plan_of_the_live_application() {
    let cluster = Cluster::shared();
    let admin = cluster.admin();
    admin.create(&[("planned.orders", 3), ("planned.customer-counts", 1)]);
    // Its metadata are kept for the default of five minutes, so it goes on while the counts do not fit.
    let app = App::builder("planned").prefix("planned.").start(cluster);
    app.wait_tasks(6);
    let shop = Shop::new(cluster, &app, "planned", "topology.pinned = []");

    let (code, steady) = shop.plan(&[]);
    assert_eq!((code, &steady["decision"]), (0, &json!("none")), "{steady:#}");
    let tasks =
        |expected: u64| json!([{"id": "0", "current": 3, "expected": expected}, {"id": "1", "current": 3, "expected": expected}]);
    assert_eq!(steady["subtopologies"], tasks(3));

    let (code, what_if) = shop.plan(&["--set-count=planned.orders=12"]);
    assert_eq!((code, &what_if["decision"]), (3, &json!("expand")), "{what_if:#}");
    let follow = |to: u64| vec![("planned-by-customer-repartition", 3, to), ("planned-counts-changelog", 3, to)];
    assert_eq!(changes(&what_if), follow(12));
    assert_eq!(what_if["subtopologies"], tasks(12));

    let before = admin.counts();
    admin.grow(&[("planned.orders", 6)]);
    let known = "--set=baseline.planned.orders=3";
    let (code, grown) = shop.plan(&[known]);
    assert_eq!((code, changes(&grown)), (3, follow(6)), "{grown:#}");
    let (code, more) = shop.plan(&[known, "--set-count=planned.orders=9"]);
    assert_eq!((code, changes(&more)), (3, follow(9)), "{more:#}");
    let (code, limited) = shop.plan(&[known, "--set=max.new.partitions=5"]);
    assert_eq!((code, &limited["code"]), (4, &json!("LIMIT_EXCEEDED")), "{limited:#}");
    let (code, table) = shop.run(&["plan", "--config=shop.toml", known]);
    assert_eq!(code, 3);
    assert!(table.contains("planned-by-customer-repartition"), "{table}");

    for (topic, count) in before.iter().filter(|(topic, _)| topic.starts_with("planned") && *topic != "planned.orders") {
        assert_eq!(admin.count(topic), Some(*count), "{topic} has changed");
    }
    let asked = cluster.requests("CREATE_PARTITIONS");
    assert!(asked.iter().all(|request| request.client_id != "planned-partition-autoscaler"), "a plan never grows anything");
    app.close();
}

/// What the configuration says of the topology counts with a snapshot as it does with the live application.
#[test]
fn settings_over_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = json!({
        "application_id": "shop",
        "topology": {
            "subtopologies": [
                {"id": 0, "sources": ["orders"], "sinks": ["by-customer-repartition"]},
                {"id": 1, "sources": ["by-customer-repartition"], "stores": ["totals"]},
            ],
            "repartition_topics": ["by-customer-repartition"],
        },
        "partitions": {"orders": 6, "shop-by-customer-repartition": 3, "shop-totals-changelog": 3},
    });
    fs::write(folder.path().join("s.json"), snapshot.to_string()).unwrap();
    let shop = Shop { folder };
    let (baseline, unpinned) = ("--set=baseline.orders=3", "--set=topology.pinned=none");
    let pinned = "--set=topology.pinned=by-customer-repartition";
    let (flag, limit) = ("--set=partition.autoscaling.enabled=true", "--set=max.new.partitions=5");
    let check = "--set=partition.autoscaling.static.partitioning.check=off";
    for (settings, code, decision) in [
        (&[][..], 4, ("blocked", json!("NO_BASELINE"))),
        (&[unpinned, baseline], 3, ("expand", Value::Null)),
        (&[pinned, baseline], 0, ("none", Value::Null)),
        (&[unpinned, baseline, flag, check], 3, ("expand", Value::Null)),
        (&[unpinned, baseline, limit], 4, ("blocked", json!("LIMIT_EXCEEDED"))),
    ] {
        let (found, text) = shop.run(&[&["plan", "--snapshot=s.json", "--output=json"][..], settings].concat());
        let plan: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((found, &plan["decision"], &plan["code"]), (code, &json!(decision.0), &decision.1), "{settings:?}: {plan:#}");
    }
    // The same from a file, in which only the part that planning needs is looked at.
    fs::write(shop.path().join("shop.toml"), "topology.pinned = []\nbaseline.orders = 3\n").unwrap();
    assert_eq!(shop.run(&["plan", "--snapshot=s.json", "--config=shop.toml"]).0, 3);
}
