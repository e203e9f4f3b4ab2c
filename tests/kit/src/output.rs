//! What a child process prints, collected as it comes.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::process::Process;

/// The lines of all piped outputs of a process, in the order of arrival.
pub struct Output {
    lines: Arc<Mutex<Vec<String>>>,
    readers: Mutex<Vec<JoinHandle<()>>>,
}

impl Output {
    /// Takes over the piped outputs of a fresh child.
    pub fn of(child: &mut Child) -> Self {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let stdout = child.stdout.take().map(|pipe| read(pipe, &lines));
        let stderr = child.stderr.take().map(|pipe| read(pipe, &lines));
        Self { lines, readers: Mutex::new(stdout.into_iter().chain(stderr).collect()) }
    }

    /// All lines so far; all there will ever be once `process` has ended.
    pub fn lines(&self, process: &Process) -> Vec<String> {
        if !process.is_alive() {
            let readers = std::mem::take(&mut *self.readers.lock().unwrap_or_else(PoisonError::into_inner));
            readers.into_iter().for_each(|reader| reader.join().expect("a reader does not panic"));
        }
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read(pipe: impl Read + Send + 'static, lines: &Arc<Mutex<Vec<String>>>) -> JoinHandle<()> {
    let lines = Arc::clone(lines);
    thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    })
}
