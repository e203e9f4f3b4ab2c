//! Kafka's protocol spoken by hand, where a request must reach one particular broker or librdkafka does not know it: what a
//! broker says about topics, and the groups of every kind it coordinates.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);
const METADATA: i16 = 3;
const LIST_GROUPS: i16 = 16;

/// What one broker says about the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Number of brokers it lists.
    pub brokers: usize,
    /// Number of partitions of each topic it knows; a topic with an error is left out.
    pub counts: BTreeMap<String, usize>,
}

/// Metadata of one broker: all topics, or those named.
pub fn metadata(broker: &str, topics: Option<&[&str]>) -> io::Result<View> {
    let mut body = Vec::new();
    match topics {
        None => body.extend((-1_i32).to_be_bytes()),
        Some(names) => {
            body.extend(length(names.len()).to_be_bytes());
            names.iter().for_each(|name| put_string(&mut body, name));
        }
    }
    body.push(0); // do not create topics
    let reply = call(broker, METADATA, 4, &[], &body)?;
    let mut reply = Reader(&reply);
    reply.i32()?; // throttle time
    let brokers = reply.array(|broker| {
        broker.i32()?;
        broker.string()?;
        broker.i32()?;
        broker.string()
    })?;
    reply.string()?; // cluster id
    reply.i32()?; // controller
    let topics = reply.array(|topic| {
        let error = topic.i16()?;
        let name = topic.string()?;
        topic.take::<1>()?; // internal
        let partitions = topic.array(|partition| {
            partition.take::<10>()?; // error, index, leader
            partition.array(Reader::i32)?;
            partition.array(Reader::i32)
        })?;
        Ok((error == 0).then_some((name, partitions.len())))
    })?;
    Ok(View { brokers: brokers.len(), counts: topics.into_iter().flatten().collect() })
}

/// States of all groups one broker coordinates, by group id.
pub fn groups(broker: &str) -> io::Result<BTreeMap<String, String>> {
    // Version 4 has the states, and is a "flexible" version: compact arrays and strings, tagged fields.
    let reply = call(broker, LIST_GROUPS, 4, &[0], &[1, 0])?;
    let mut reply = Reader(&reply);
    reply.take::<1>()?; // tags of the header
    reply.i32()?; // throttle time
    reply.i16()?; // error
    let count = reply.varint()?.saturating_sub(1);
    let mut groups = BTreeMap::new();
    for _ in 0..count {
        let id = reply.compact_string()?;
        reply.compact_string()?; // protocol type
        groups.insert(id, reply.compact_string()?);
        reply.take::<1>()?; // tags
    }
    Ok(groups)
}

/// Sends one request on a connection of its own and returns the answer behind the correlation id.
pub(crate) fn call(broker: &str, api: i16, version: i16, header_tags: &[u8], body: &[u8]) -> io::Result<Vec<u8>> {
    let mut request = Vec::new();
    request.extend(api.to_be_bytes());
    request.extend(version.to_be_bytes());
    request.extend(1_i32.to_be_bytes()); // correlation id
    put_string(&mut request, "kit");
    request.extend(header_tags);
    request.extend(body);
    let mut stream = TcpStream::connect(broker)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(&length(request.len()).to_be_bytes())?;
    stream.write_all(&request)?;
    let mut size = [0; 4];
    stream.read_exact(&mut size)?;
    let mut reply = vec![0; usize::try_from(i32::from_be_bytes(size)).map_err(io::Error::other)?];
    stream.read_exact(&mut reply)?;
    Ok(reply.split_off(4.min(reply.len())))
}

fn length(len: usize) -> i32 {
    i32::try_from(len).expect("a small request")
}

pub(crate) fn put_string(buffer: &mut Vec<u8>, text: &str) {
    buffer.extend(i16::try_from(text.len()).expect("a short name").to_be_bytes());
    buffer.extend(text.as_bytes());
}

/// Reads the fields of an answer one after the other.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    fn bytes(&mut self, len: usize) -> io::Result<&[u8]> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = tail;
        Ok(head)
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.bytes(N)?.try_into().map_err(io::Error::other)
    }

    pub(crate) fn i16(&mut self) -> io::Result<i16> {
        self.take().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> io::Result<i32> {
        self.take().map(i32::from_be_bytes)
    }

    fn text(&mut self, len: usize) -> io::Result<String> {
        String::from_utf8(self.bytes(len)?.to_vec()).map_err(io::Error::other)
    }

    pub(crate) fn string(&mut self) -> io::Result<String> {
        let len = self.i16()?;
        self.text(usize::try_from(len).unwrap_or(0)) // -1 is null
    }

    fn compact_string(&mut self) -> io::Result<String> {
        let len = self.varint()?.saturating_sub(1);
        self.text(len)
    }

    fn varint(&mut self) -> io::Result<usize> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let [byte] = self.take()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(value)
    }

    fn array<T>(&mut self, mut item: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        let len = self.i32()?;
        (0..len).map(|_| item(self)).collect()
    }
}
