//! ACLs of users, set through the wire because the Rust wrapper of librdkafka cannot.

use std::io;

use crate::wire::{self, Reader};

const DESCRIBE_ACLS: i16 = 29;
const CREATE_ACLS: i16 = 30;
const DELETE_ACLS: i16 = 31;
const VERSION: i16 = 1;

/// What is allowed, with Kafka's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Everything.
    All = 2,
    /// Read records; join a group and commit offsets.
    Read = 3,
    /// Write records.
    Write = 4,
    /// Create topics.
    Create = 5,
    /// Delete topics.
    Delete = 6,
    /// Change a topic, such as its partition count.
    Alter = 7,
    /// See that it exists, and its counts.
    Describe = 8,
    /// Read its configuration.
    DescribeConfigs = 10,
    /// Change its configuration.
    AlterConfigs = 11,
}

/// What it is allowed on, with Kafka's codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Resource {
    /// A topic.
    Topic = 2,
    /// A group.
    Group = 3,
    /// The cluster; its name is `kafka-cluster`.
    Cluster = 4,
    /// A transactional id.
    TransactionalId = 5,
}

/// Permission of one user for one operation, from any host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    user: String,
    operation: Operation,
    resource: Resource,
    name: String,
    prefixed: bool,
}

impl Acl {
    /// Permission on the resource of exactly this name.
    pub fn new(user: &str, operation: Operation, resource: Resource, name: &str) -> Self {
        Self { user: user.to_owned(), operation, resource, name: name.to_owned(), prefixed: false }
    }

    /// Extends it to all resources whose names start with the name.
    pub fn prefixed(mut self) -> Self {
        self.prefixed = true;
        self
    }

    /// The fields that creations and filters have in common, in the order of the protocol.
    fn encode(&self) -> Vec<u8> {
        const ALLOW: u8 = 3;
        let mut bytes = vec![self.resource as u8];
        wire::put_string(&mut bytes, &self.name);
        bytes.push(if self.prefixed { 4 } else { 3 });
        wire::put_string(&mut bytes, &format!("User:{}", self.user));
        wire::put_string(&mut bytes, "*");
        bytes.extend([self.operation as u8, ALLOW]);
        bytes
    }
}

/// Creates an ACL.
pub(crate) fn create(broker: &str, acl: &Acl) -> io::Result<()> {
    change(broker, CREATE_ACLS, acl)
}

/// Deletes an ACL.
pub(crate) fn delete(broker: &str, acl: &Acl) -> io::Result<()> {
    change(broker, DELETE_ACLS, acl)
}

/// Whether this broker acts by the ACL already.
pub(crate) fn exists(broker: &str, acl: &Acl) -> io::Result<bool> {
    let reply = wire::call(broker, DESCRIBE_ACLS, VERSION, &[], &acl.encode())?;
    let mut reply = Reader(&reply);
    reply.i32()?; // throttle time
    check(&mut reply)?;
    Ok(reply.i32()? > 0)
}

/// Both requests are a list of the same fields, and both answers start with the error of the first.
fn change(broker: &str, api: i16, acl: &Acl) -> io::Result<()> {
    let body = [1_i32.to_be_bytes().to_vec(), acl.encode()].concat();
    let reply = wire::call(broker, api, VERSION, &[], &body)?;
    let mut reply = Reader(&reply);
    reply.i32()?; // throttle time
    reply.i32()?; // number of results: one
    check(&mut reply)
}

fn check(reply: &mut Reader<'_>) -> io::Result<()> {
    let (code, message) = (reply.i16()?, reply.string()?);
    if code == 0 { Ok(()) } else { Err(io::Error::other(format!("error {code} {message}"))) }
}
