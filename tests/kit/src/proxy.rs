//! A line to a broker that can be cut like a network that drops everything: connections stay open, nothing comes through.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// Passes bytes on, both ways, unless it is cut. It ends with the process.
pub(crate) struct Proxy {
    port: u16,
    line: Arc<Line>,
}

#[derive(Default)]
struct Line {
    cut: Mutex<bool>,
    changed: Condvar,
}

impl Line {
    fn wait_whole(&self) {
        let cut = self.cut.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_while(cut, |cut| *cut));
    }
}

impl Proxy {
    /// Listens on a free port of loopback; `target` is where the bytes go.
    pub(crate) fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener.local_addr().expect("a bound socket").port();
        let line = Arc::<Line>::default();
        let shared = Arc::clone(&line);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let line = Arc::clone(&shared);
                thread::spawn(move || {
                    line.wait_whole();
                    // A broker that is down is seen by the client as a connection that closes.
                    let Ok(server) = TcpStream::connect(target) else { return };
                    let (Ok(from), Ok(to)) = (client.try_clone(), server.try_clone()) else { return };
                    let back = Arc::clone(&line);
                    thread::spawn(move || pass(&back, to, from));
                    pass(&line, client, server);
                });
            }
        });
        Self { port, line }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the line, or mends it: what was sent meanwhile arrives then, as TCP would have it.
    pub(crate) fn set_cut(&self, cut: bool) {
        *self.line.cut.lock().unwrap_or_else(PoisonError::into_inner) = cut;
        self.line.changed.notify_all();
    }
}

fn pass(line: &Line, from: TcpStream, to: TcpStream) {
    let copied = copy(line, &from, &to);
    // Whatever ended it, both sides shall know.
    for end in [&from, &to] {
        let _ = end.shutdown(Shutdown::Both);
    }
    drop(copied);
}

fn copy(line: &Line, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
    let mut bytes = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut bytes)?;
        line.wait_whole();
        match bytes.get(..count) {
            Some(read) if !read.is_empty() => to.write_all(read)?,
            _ => return Ok(()),
        }
    }
}
