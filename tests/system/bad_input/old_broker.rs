//! A broker of Kafka 2.3, as far as a client sees it that reads metadata: topics have no id.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

const API_VERSIONS: i16 = 18;
const METADATA: i16 = 3;
const METADATA_VERSION: i16 = 8;
const UNSUPPORTED_VERSION: i16 = 35;

/// Starts it; it ends with the process. Every topic that is asked for has three partitions.
pub fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes is no error.
            thread::spawn(move || serve(stream, address.port()));
        }
    });
    address.to_string()
}

fn serve(mut stream: TcpStream, port: u16) -> io::Result<()> {
    loop {
        let mut size = [0; 4];
        stream.read_exact(&mut size)?;
        let mut request = vec![0; u32::from_be_bytes(size) as usize];
        stream.read_exact(&mut request)?;
        let number = |at: usize| i16::from_be_bytes([request[at], request[at + 1]]);
        let client_id = usize::try_from(number(8)).unwrap_or(0);
        let body = match (number(0), number(2)) {
            (API_VERSIONS, version) => api_versions(version),
            (METADATA, METADATA_VERSION) => metadata(port, &request[10 + client_id..]),
            other => panic!("a request that this broker does not know: {other:?}"),
        };
        let answer = [&request[4..8], &body].concat();
        stream.write_all(&u32::try_from(answer.len()).unwrap().to_be_bytes())?;
        stream.write_all(&answer)?;
    }
}

/// The oldest layout, which is what a broker answers to a version that it does not know.
fn api_versions(version: i16) -> Vec<u8> {
    let error = if version > 2 { UNSUPPORTED_VERSION } else { 0 };
    let throttle = if (1..=2).contains(&version) { 4 } else { 0 };
    let known = [(0, 7), (1, 11), (METADATA, METADATA_VERSION), (API_VERSIONS, 2), (37, 1)];
    let mut body = error.to_be_bytes().to_vec();
    body.extend((known.len() as u32).to_be_bytes());
    body.extend(known.iter().flat_map(|(key, to)| [*key, 0, *to]).flat_map(i16::to_be_bytes));
    body.extend(vec![0; throttle]);
    body
}

fn metadata(port: u16, request: &[u8]) -> Vec<u8> {
    let mut topics = Vec::new();
    let count = i32::from_be_bytes(request[..4].try_into().unwrap());
    let mut rest = &request[4..];
    for _ in 0..count {
        let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
        topics.push(&rest[..2 + length]);
        rest = &rest[2 + length..];
    }
    let mut body = vec![0; 4]; // throttle time
    body.extend(1_i32.to_be_bytes());
    body.extend(1_i32.to_be_bytes()); // node id
    body.extend([&9_i16.to_be_bytes()[..], b"127.0.0.1"].concat());
    body.extend(i32::from(port).to_be_bytes());
    body.extend((-1_i16).to_be_bytes()); // rack
    body.extend([&3_i16.to_be_bytes()[..], b"old"].concat()); // cluster id
    body.extend(1_i32.to_be_bytes()); // controller
    body.extend((topics.len() as u32).to_be_bytes());
    for topic in topics {
        body.extend([0; 2]); // error
        body.extend(topic);
        body.push(0); // internal
        body.extend(3_i32.to_be_bytes());
        for partition in 0..3_i32 {
            body.extend([0; 2]); // error
            body.extend(partition.to_be_bytes());
            body.extend(1_i32.to_be_bytes()); // leader
            body.extend([0; 4]); // epoch
            for replicas in [&[1_i32][..], &[1], &[]] {
                body.extend((replicas.len() as u32).to_be_bytes());
                body.extend(replicas.iter().flat_map(|replica| replica.to_be_bytes()));
            }
        }
        body.extend(i32::MIN.to_be_bytes()); // operations
    }
    body.extend(i32::MIN.to_be_bytes()); // operations on the cluster
    body
}
