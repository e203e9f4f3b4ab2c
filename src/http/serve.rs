//! Connections, no more and no longer than the process can afford: clients may be broken or hostile, and the brokers need
//! descriptors too.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::connect_info::ConnectInfo;
use axum::serve::Listener;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Most connections at a time.
const MOST: usize = 64;

/// How long the head of a request may take to arrive, counted from the last answer, and how long its body.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How long open requests may take once the server is to end.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves until the sender of `stopped` is gone.
pub(super) async fn serve(mut listener: TcpListener, routes: Router, mut stopped: oneshot::Receiver<()>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    let graceful = GracefulShutdown::new();
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        let (stream, from) = tokio::select! {
            _ = &mut stopped => break,
            accepted = Listener::accept(&mut listener) => accepted,
        };
        open.retain(|connection| !connection.is_finished());
        // The oldest gives way, so that probes are answered whatever others do.
        if open.len() >= MOST
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
            let _ = oldest.await; // its descriptor is free then
        }
        let routes = routes.clone().layer(Extension(ConnectInfo::<SocketAddr>(from)));
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes)));
        open.push_back(tokio::spawn(async {
            let _ = connection.await; // a client that breaks off, or is too slow, is no fault of ours
        }));
    }
    drop(listener);
    let _ = timeout(FAREWELL, graceful.shutdown()).await; // what takes longer is cut off
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;
    use crate::http::{Metrics, Server, Shared};

    fn start() -> Server {
        Server::start("127.0.0.1:0", Shared::new(Metrics::new().unwrap())).unwrap()
    }

    /// A connection on which this was sent.
    fn connect(server: &Server, sent: &str) -> TcpStream {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(6 * PATIENCE)).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        stream
    }

    /// What comes until the server closes the connection.
    fn rest(mut stream: TcpStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn the_oldest_connection_gives_way() {
        let server = start();
        let mut idle: VecDeque<TcpStream> = (0..MOST).map(|_| connect(&server, "")).collect();
        let answer = rest(connect(&server, "GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert_eq!(rest(idle.pop_front().unwrap()), "");
        let mut youngest = idle.pop_back().unwrap();
        youngest.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        assert!(rest(youngest).ends_with("ok\n"));
    }

    #[test]
    fn who_says_nothing_more_is_not_waited_for() {
        let server = start();
        let nothing = connect(&server, "");
        let half = connect(&server, "GET /livez HTTP/1.1\r\nHo");
        let idle = connect(&server, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n");
        let body = connect(&server, "PUT /v1/config HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{");
        assert_eq!(rest(nothing), "");
        assert_eq!(rest(half), "");
        assert!(rest(idle).ends_with("\r\n\r\nok\n"));
        let answer = rest(body);
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
    }
}
