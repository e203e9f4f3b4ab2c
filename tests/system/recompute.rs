//! What the topologies of the fixture must have made of their inputs, worked out from the input records alone. The meaning of
//! each output is laid down in `tests/fixture/src/Topologies.java`.

use std::collections::BTreeMap;

use kit::Record;

const HOUR_MS: i64 = 3_600_000;

/// Everything ever produced, topic by topic, in the order of production: (key, value, timestamp).
#[derive(Debug, Default)]
pub struct Inputs {
    pub orders: Vec<(String, String, i64)>,
    pub payments: Vec<(String, String, i64)>,
    pub customers: Vec<(String, String, i64)>,
    pub products: Vec<(String, String, i64)>,
    pub invoices: Vec<(String, String, i64)>,
}

/// Records to produce, each in the partition its key names.
pub fn records(input: &[(String, String, i64)]) -> Vec<Record> {
    input.iter().map(|(key, value, at)| Record::new(key, value).to_own().at(*at)).collect()
}

type Table = BTreeMap<String, String>;
/// Sorted, so that two sets compare equal whatever the order of processing was.
type Set = Vec<(String, String)>;

impl Inputs {
    /// `customer-counts`.
    pub fn customer_counts(&self) -> Table {
        count(self.orders.iter().map(|(_, order, _)| customer(order).to_owned()))
    }

    /// `product-counts`.
    pub fn product_counts(&self) -> Table {
        count(self.orders.iter().map(|(_, order, _)| product(order).to_owned()))
    }

    /// `payment-counts`.
    pub fn payment_counts(&self) -> Table {
        count(self.payments.iter().map(|(order, _, _)| order.clone()))
    }

    /// `hourly`.
    pub fn hourly(&self) -> Table {
        count(self.orders.iter().map(|(_, order, at)| format!("{}@{}", customer(order), at - at % HOUR_MS)))
    }

    /// `paid`, for inputs whose timestamps are less than a day apart.
    pub fn paid(&self) -> Set {
        let mut payments: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (order, payment, _) in &self.payments {
            payments.entry(order).or_default().push(payment);
        }
        let pairs = self.orders.iter().flat_map(|(id, order, _)| {
            let payments = payments.get(id.as_str()).into_iter().flatten();
            payments.map(move |payment| (id.clone(), format!("{order}|{payment}")))
        });
        sorted(pairs)
    }

    /// `enriched`, for customers that never change and were processed before their orders.
    pub fn enriched(&self) -> Set {
        let names = last(&self.customers);
        sorted(self.orders.iter().map(|(id, order, _)| {
            let name = names.get(customer(order)).map_or("null", String::as_str);
            (customer(order).to_owned(), format!("{id}|{name}"))
        }))
    }

    /// `priced`.
    pub fn priced(&self) -> Table {
        let names = last(&self.products);
        let priced = last(&self.invoices).into_iter().filter_map(|(invoice, product)| {
            let name = names.get(&product)?;
            Some((invoice, format!("{product}|{name}")))
        });
        priced.collect()
    }
}

fn customer(order: &str) -> &str {
    order.split_once(',').expect("an order is customer,product").0
}

fn product(order: &str) -> &str {
    order.split_once(',').expect("an order is customer,product").1
}

fn count(keys: impl Iterator<Item = String>) -> Table {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts.into_iter().map(|(key, count)| (key, count.to_string())).collect()
}

fn last(records: &[(String, String, i64)]) -> Table {
    records.iter().map(|(key, value, _)| (key.clone(), value.clone())).collect()
}

fn sorted(pairs: impl Iterator<Item = (String, String)>) -> Set {
    let mut pairs: Set = pairs.collect();
    pairs.sort();
    pairs
}
