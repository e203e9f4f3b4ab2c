//! Every topology of the fixture runs, with the tasks and internal topics it is known to have.

use kit::{App, Cluster};

struct Case {
    topology: &'static str,
    /// Inputs with their counts.
    inputs: &'static [(&'static str, usize)],
    tasks: usize,
    /// Internal topics without the application's id, in order.
    internal: &'static [(&'static str, usize)],
}

const CASES: [Case; 11] = [
    Case {
        topology: "simple",
        inputs: &[("orders", 2)],
        tasks: 4,
        internal: &[("by-customer-repartition", 2), ("counts-changelog", 2)],
    },
    Case {
        topology: "pattern",
        inputs: &[("orders", 2), ("orders-too", 3)],
        tasks: 6,
        internal: &[("by-customer-repartition", 3), ("counts-changelog", 3)],
    },
    Case { topology: "stateless", inputs: &[("orders", 2)], tasks: 2, internal: &[] },
    Case { topology: "papi", inputs: &[("payments", 2)], tasks: 2, internal: &[("payments-store-changelog", 2)] },
    Case {
        topology: "join",
        inputs: &[("orders", 2), ("payments", 2)],
        tasks: 4,
        internal: &[
            ("by-customer-repartition", 2),
            ("counts-changelog", 2),
            ("paid-other-join-store-changelog", 2),
            ("paid-this-join-store-changelog", 2),
        ],
    },
    Case {
        topology: "table-join",
        inputs: &[("orders", 2), ("customers", 3)],
        tasks: 5,
        internal: &[("customers-store-changelog", 3), ("enriched-repartition", 3)],
    },
    Case {
        topology: "fk",
        inputs: &[("invoices", 2), ("products", 3)],
        tasks: 5,
        internal: &[
            ("invoices-store-changelog", 2),
            ("priced-subscription-registration-topic", 3),
            ("priced-subscription-response-topic", 2),
            ("priced-subscription-store-changelog", 3),
            ("products-store-changelog", 3),
        ],
    },
    Case {
        topology: "window",
        inputs: &[("orders", 2)],
        tasks: 4,
        internal: &[("by-customer-hourly-repartition", 2), ("hourly-counts-changelog", 2)],
    },
    Case {
        topology: "pinned",
        inputs: &[("orders", 2)],
        tasks: 6,
        internal: &[("by-product-pinned-repartition", 4), ("product-counts-changelog", 4)],
    },
    Case { topology: "optimized", inputs: &[("customers", 2)], tasks: 2, internal: &[] },
    Case {
        topology: "wide",
        inputs: &[("orders", 1)],
        tasks: 3,
        internal: &[
            ("wide-0-repartition", 1),
            ("wide-1-repartition", 1),
            ("wide-counts-0-changelog", 1),
            ("wide-counts-1-changelog", 1),
        ],
    },
];

/// So many JVMs start side by side.
const BATCH: usize = 4;

fn run_all(protocol: &str, cases: &[&Case]) {
    cases.chunks(BATCH).for_each(|batch| run_batch(protocol, batch));
}

fn run_batch(protocol: &str, cases: &[&Case]) {
    let cluster = Cluster::shared();
    let admin = cluster.admin();
    let start = |case: &&Case| {
        let id = format!("kit-{protocol}-{}", case.topology);
        let inputs: Vec<(String, usize)> = case.inputs.iter().map(|(name, count)| (format!("{id}.{name}"), *count)).collect();
        admin.create(&inputs.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>());
        let app = App::builder(&id).topology(case.topology).width(2).prefix(&format!("{id}.")).protocol(protocol);
        app.start(cluster)
    };
    let apps: Vec<App> = cases.iter().map(start).collect();
    for (app, case) in apps.iter().zip(cases) {
        app.wait_tasks(case.tasks);
        let internal = admin.internal_counts(app.id()).into_iter();
        let internal: Vec<_> = internal.map(|(name, count)| (name.replacen(&format!("{}-", app.id()), "", 1), count)).collect();
        let expected: Vec<_> = case.internal.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        assert_eq!(internal, expected, "{}", app.id());
    }
}

#[test]
fn every_topology_runs_with_the_classic_protocol() {
    run_all("classic", &CASES.each_ref());
}

#[test]
fn topologies_run_as_streams_groups() {
    let chosen = |case: &&Case| ["join", "fk", "pinned", "wide"].contains(&case.topology);
    run_all("streams", &CASES.iter().filter(chosen).collect::<Vec<_>>());
}
