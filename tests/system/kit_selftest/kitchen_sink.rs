//! The kitchen sink, statically partitioned, through a growth of everything: its outputs are what its inputs say.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use kit::{Admin, App, Cluster};

use crate::recompute::{Inputs, records};

const APP: &str = "kit-sink";
const INPUTS: [&str; 5] = ["customers", "products", "invoices", "orders", "payments"];
const OUTPUTS: [&str; 7] = ["customer-counts", "paid", "enriched", "priced", "hourly", "payment-counts", "product-counts"];

fn topic(name: &str) -> String {
    format!("{APP}.{name}")
}

/// One more round of records for keys of partitions `0..partitions`, appended to `inputs` and produced.
fn produce_round(admin: &Admin<'_>, inputs: &mut Inputs, round: i64, partitions: usize) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let start = i64::try_from(now).expect("before the year 292 million") - 7_200_000;
    let mut news = Inputs::default();
    for number in 0..60 {
        let at = start + number * 100_000; // spread over almost two hours
        let own = |shift: usize| (usize::try_from(number).expect("positive") + shift) % partitions;
        let order = format!("{}:order-{round}-{number}", own(0));
        news.orders.push((order.clone(), format!("{}:customer,{}:product", own(1), own(2)), at));
        if number % 3 != 0 {
            news.payments.push((order.clone(), "cash".to_owned(), at));
        }
        if number % 4 == 0 {
            news.payments.push((order, "card".to_owned(), at));
        }
        news.invoices.push((format!("{}:invoice-{}", own(1), number % 20), format!("{}:product", own(0)), at));
    }
    for own in 0..partitions {
        news.customers.push((format!("{own}:customer"), format!("name of {own}"), start));
        news.products.push((format!("{own}:product"), format!("name in round {round}"), start));
    }
    for (name, pairs, all) in [
        ("customers", news.customers, &mut inputs.customers),
        ("products", news.products, &mut inputs.products),
        ("invoices", news.invoices, &mut inputs.invoices),
        ("orders", news.orders, &mut inputs.orders),
        ("payments", news.payments, &mut inputs.payments),
    ] {
        admin.produce(&topic(name), &records(&pairs));
        if name == "customers" {
            admin.wait_caught_up(APP, &[&topic(name)]);
        }
        all.extend(pairs);
    }
    wait_all_processed(admin);
}

fn wait_all_processed(admin: &Admin<'_>) {
    let mut stages: Vec<String> = INPUTS.map(topic).to_vec();
    let internal = admin.internal_counts(APP).into_keys();
    let (registration, others): (Vec<_>, Vec<_>) =
        internal.filter(|topic| !topic.ends_with("-changelog")).partition(|topic| topic.ends_with("registration-topic"));
    stages.extend(registration);
    stages.extend(others);
    admin.wait_caught_up(APP, &stages.iter().map(String::as_str).collect::<Vec<_>>());
}

fn assert_outputs(admin: &Admin<'_>, inputs: &Inputs) {
    let table = |name| admin.read_table(&topic(name));
    let set = |name| {
        let pairs = admin.read_all(&topic(name)).into_iter();
        let mut pairs: Vec<_> = pairs.map(|record| (record.key.unwrap_or_default(), record.value.unwrap_or_default())).collect();
        pairs.sort();
        pairs
    };
    assert_eq!(table("customer-counts"), inputs.customer_counts());
    assert_eq!(table("product-counts"), inputs.product_counts());
    assert_eq!(table("payment-counts"), inputs.payment_counts());
    assert_eq!(table("hourly"), inputs.hourly());
    assert_eq!(table("priced"), inputs.priced());
    assert_eq!(set("paid"), inputs.paid());
    assert_eq!(set("enriched"), inputs.enriched());
}

#[test]
fn static_partitioning_keeps_all_results_right_when_everything_grows() {
    let cluster = Cluster::shared();
    let admin = cluster.admin();
    let topics: Vec<(String, usize)> =
        INPUTS.iter().map(|name| (topic(name), 3)).chain(OUTPUTS.iter().map(|name| (topic(name), 1))).collect();
    admin.create(&topics.iter().map(|(name, count)| (name.as_str(), *count)).collect::<Vec<_>>());
    let app = App::builder(APP).topology("kitchen-sink").prefix(&topic("")).static_partitioner().metadata_age_ms(1000);
    // The producers do not hear of the growth by themselves: keys of new partitions must find their way all the same.
    let app = app.property("producer.metadata.max.age.ms", "300000");
    let app = app.start(cluster);
    app.wait_tasks(6 * 3 + 4);

    let internal: BTreeMap<String, usize> = admin.internal_counts(APP);
    let kept: Vec<&str> = internal.iter().filter(|(_, count)| **count != 3).map(|(name, _)| name.as_str()).collect();
    assert_eq!(kept, ["kit-sink-by-product-pinned-repartition", "kit-sink-product-counts-changelog"]);
    assert!(!internal.contains_key("kit-sink-customers-store-changelog"), "the customers topic is its own changelog");

    let mut inputs = Inputs::default();
    produce_round(&admin, &mut inputs, 1, 3);
    assert_outputs(&admin, &inputs);

    let grown: Vec<String> =
        internal.into_iter().filter(|(_, count)| *count == 3).map(|(name, _)| name).chain(INPUTS.map(topic)).collect();
    admin.grow(&grown.iter().map(|name| (name.as_str(), 6)).collect::<Vec<_>>());
    app.wait_tasks(6 * 6 + 4);
    produce_round(&admin, &mut inputs, 2, 6);
    assert_outputs(&admin, &inputs);
    assert_eq!(app.exceptions(), Vec::<String>::new());
}
