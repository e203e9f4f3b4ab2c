//! The topology `kitchen-sink` on a stage, statically partitioned: its topics, rounds of records for it, and whether its outputs
//! are what the records say.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kit::app;
use serde_json::json;

use crate::recompute::{Inputs, records};
use crate::stage::{Stage, borrowed};

const OUTPUTS: [&str; 7] = ["customer-counts", "paid", "enriched", "priced", "hourly", "payment-counts", "product-counts"];

/// Counts of the inputs. Keys name their partition, so these are also the keys there are.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Of `orders` and of `payments`, which are joined.
    pub orders: usize,
    /// No more than `orders`: the orders of a customer are counted in a topic that has as many partitions as `orders`.
    pub customers: usize,
    pub products: usize,
    pub invoices: usize,
}

impl Counts {
    pub fn all(count: usize) -> Self {
        Self { orders: count, customers: count, products: count, invoices: count }
    }

    pub fn topics(self) -> [(&'static str, usize); 5] {
        let Self { orders, customers, products, invoices } = self;
        [("customers", customers), ("products", products), ("invoices", invoices), ("orders", orders), ("payments", orders)]
    }

    /// Active tasks: two subtopologies behind `orders`, one at each input or pair, and the pinned one with four.
    pub fn tasks(self) -> usize {
        3 * self.orders + self.customers + self.products + self.invoices + 4
    }
}

/// The repartition topic with a count in the application's code.
const PINNED: &str = "by-product-pinned-repartition";

/// Internal topics as they have to be for these inputs, by short name. (The tables' changelogs are the inputs themselves.)
fn internal(counts: Counts) -> [(&'static str, usize); 11] {
    let Counts { orders, customers, products, invoices } = counts;
    [
        ("by-customer-hourly-repartition", orders),
        ("by-customer-repartition", orders),
        ("counts-changelog", orders),
        ("enriched-repartition", customers),
        ("hourly-counts-changelog", orders),
        ("paid-other-join-store-changelog", orders),
        ("paid-this-join-store-changelog", orders),
        ("payments-store-changelog", orders),
        ("priced-subscription-registration-topic", products),
        ("priced-subscription-response-topic", invoices),
        ("priced-subscription-store-changelog", products),
    ]
}

/// What the text of the topology leaves open, as its author states it: values for the configuration, by key.
pub fn stated(stage: &Stage<'_>) -> [(&'static str, String); 2] {
    let groups = [
        [stage.topic("orders"), stage.topic("payments")],
        [stage.topic("customers"), "enriched-repartition".to_owned()],
        [stage.topic("invoices"), "priced-subscription-response-topic".to_owned()],
        [stage.topic("products"), "priced-subscription-registration-topic".to_owned()],
    ];
    [("topology.pinned", json!([PINNED]).to_string()), ("topology.copartition_groups", json!(groups).to_string())]
}

/// See the module.
pub struct Kitchen<'a> {
    stage: &'a Stage<'a>,
    inputs: Inputs,
    rounds: i64,
}

impl<'a> Kitchen<'a> {
    /// Creates inputs and outputs.
    pub fn new(stage: &'a Stage<'a>, counts: Counts) -> Self {
        let topics: Vec<_> = counts.topics().into_iter().chain(OUTPUTS.map(|name| (name, 1))).collect();
        stage.create(&topics);
        Self { stage, inputs: Inputs::default(), rounds: 0 }
    }

    pub fn app(&self) -> app::Builder {
        let app = self.stage.app().topology("kitchen-sink").static_partitioner();
        // The producers do not hear of a growth by themselves: keys of new partitions must find their way all the same.
        app.property("producer.metadata.max.age.ms", "300000")
    }

    /// Makes the customers of partitions `from..to` known before anybody orders for them.
    pub fn add_customers(&mut self, from: usize, to: usize) {
        let customers = (from..to).map(|own| (format!("{own}:customer"), format!("name of {own}"), start()));
        let customers: Vec<_> = customers.collect();
        let (admin, topic) = (self.stage.cluster.admin(), self.stage.topic("customers"));
        admin.produce(&topic, &records(&customers));
        admin.wait_caught_up(self.stage.id, &[&topic]);
        self.inputs.customers.extend(customers);
    }

    /// One more round of records, with `size` orders, for keys of all partitions.
    pub fn produce_round(&mut self, size: i64, counts: Counts) {
        self.rounds += 1;
        let (round, start) = (self.rounds, start());
        let mut news = Inputs::default();
        for number in 0..size {
            let at = start + number * 6_000_000 / size; // spread over almost two hours
            let own = |shift: usize, count: usize| (usize::try_from(round + number).expect("positive") + shift) % count;
            let order = format!("{}:order-{round}-{number}", own(0, counts.orders));
            let (customer, product) = (own(1, counts.customers), own(2, counts.products));
            news.orders.push((order.clone(), format!("{customer}:customer,{product}:product"), at));
            if number % 3 != 0 {
                news.payments.push((order.clone(), "cash".to_owned(), at));
            }
            if number % 4 == 0 {
                news.payments.push((order, "card".to_owned(), at));
            }
            let invoice = format!("{}:invoice-{}", own(1, counts.invoices), number % 20);
            news.invoices.push((invoice, format!("{}:product", own(0, counts.products)), at));
        }
        for own in 0..counts.products {
            news.products.push((format!("{own}:product"), format!("name in round {round}"), start));
        }
        let all =
            [("products", &news.products), ("invoices", &news.invoices), ("orders", &news.orders), ("payments", &news.payments)];
        let all = all.map(|(name, pairs)| (self.stage.topic(name), records(pairs)));
        let all = all.each_ref().map(|(topic, records)| (topic.as_str(), records.as_slice()));
        self.stage.cluster.admin().produce_all(&all);
        self.inputs.products.extend(news.products);
        self.inputs.invoices.extend(news.invoices);
        self.inputs.orders.extend(news.orders);
        self.inputs.payments.extend(news.payments);
    }

    /// Does something while small rounds are produced, one after the other.
    pub fn under_load(&mut self, counts: Counts, act: impl FnOnce()) {
        const PACE: Duration = Duration::from_millis(100);
        thread::scope(|scope| {
            let (stop, stopped) = mpsc::channel::<()>();
            scope.spawn(move || {
                while stopped.recv_timeout(PACE) == Err(RecvTimeoutError::Timeout) {
                    self.produce_round(6, counts);
                }
            });
            act();
            drop(stop);
        });
    }

    /// Every internal topic has the count that these inputs want, and there is no other.
    #[track_caller]
    pub fn assert_internal(&self, counts: Counts) {
        let expected = internal(counts).into_iter().chain([(PINNED, 4), ("product-counts-changelog", 4)]);
        let expected: BTreeMap<String, usize> = expected.map(|(name, count)| (self.stage.internal(name), count)).collect();
        assert_eq!(self.stage.cluster.admin().internal_counts(self.stage.id), expected);
    }

    /// Waits until everything has been processed, and compares all outputs with the inputs.
    #[track_caller]
    pub fn assert_outputs(&self) {
        let admin = self.stage.cluster.admin();
        let mut stages: Vec<String> =
            ["customers", "products", "invoices", "orders", "payments"].map(|name| self.stage.topic(name)).to_vec();
        let internal = admin.internal_counts(self.stage.id).into_keys();
        let (registration, others): (Vec<_>, Vec<_>) =
            internal.filter(|topic| !topic.ends_with("-changelog")).partition(|topic| topic.ends_with("registration-topic"));
        stages.extend(registration);
        stages.extend(others);
        admin.wait_caught_up(self.stage.id, &stages.iter().map(String::as_str).collect::<Vec<_>>());

        let table = |name| admin.read_table(&self.stage.topic(name));
        let set = |name| {
            let pairs = admin.read_all(&self.stage.topic(name)).into_iter();
            let mut pairs: Vec<_> =
                pairs.map(|record| (record.key.unwrap_or_default(), record.value.unwrap_or_default())).collect();
            pairs.sort();
            pairs
        };
        assert_eq!(table("customer-counts"), self.inputs.customer_counts());
        assert_eq!(table("product-counts"), self.inputs.product_counts());
        assert_eq!(table("payment-counts"), self.inputs.payment_counts());
        assert_eq!(table("hourly"), self.inputs.hourly());
        assert_eq!(table("priced"), self.inputs.priced());
        assert_eq!(set("paid"), self.inputs.paid());
        assert_eq!(set("enriched"), self.inputs.enriched());
    }

    /// Grows inputs and internal topics in one request, as only an administrator with a plan would.
    pub fn grow_everything(&self, counts: Counts) {
        let inputs = counts.topics().into_iter().map(|(name, count)| (self.stage.topic(name), count));
        let internal = internal(counts).into_iter().map(|(name, count)| (self.stage.internal(name), count));
        let topics: Vec<_> = inputs.chain(internal).collect();
        self.stage.cluster.admin().grow(&borrowed(&topics));
    }
}

/// Two hours ago, in milliseconds since 1970.
fn start() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    i64::try_from(now).expect("before the year 292 million") - 7_200_000
}
