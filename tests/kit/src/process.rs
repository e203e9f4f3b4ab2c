//! Child processes that cannot outlive the test process, and the folders they work in.

use std::fs;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

use crate::wait;

/// A running child process; killed when dropped, and by the kernel when this process ends in whatever way.
pub struct Process {
    name: String,
    pid: libc::pid_t,
    child: Mutex<Child>,
}

impl Process {
    /// Starts `command`; `name` is what messages call it.
    pub fn start(name: &str, command: Command) -> Self {
        let child = spawn(command).unwrap_or_else(|error| panic!("{name} did not start: {error}"));
        let pid = libc::pid_t::try_from(child.id()).expect("a process id fits pid_t");
        Self { name: name.to_owned(), pid, child: Mutex::new(child) }
    }

    /// Process id, also after the process has ended.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The standard library's handle, to take the pipes from.
    pub fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the process ended; `None` while it runs.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.child().try_wait().expect("the child is ours to wait for")
    }

    /// Whether the process has not ended yet; a paused one is alive.
    pub fn is_alive(&self) -> bool {
        self.exit_status().is_none()
    }

    /// Waits for the end of the process.
    #[track_caller]
    pub fn wait_exit(&self, deadline: Duration) -> ExitStatus {
        wait::until(deadline, &format!("the end of {} (pid {})", self.name, self.pid), || self.exit_status())
    }

    /// `SIGTERM`.
    pub fn terminate(&self) {
        self.signal(libc::SIGTERM);
    }

    /// `SIGSTOP`.
    pub fn pause(&self) {
        self.signal(libc::SIGSTOP);
    }

    /// `SIGCONT`.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    /// `SIGHUP`.
    pub fn hang_up(&self) {
        self.signal(libc::SIGHUP);
    }

    /// `SIGKILL`, and waits until the process is gone.
    pub fn kill(&self) {
        let mut child = self.child();
        // Neither fails for a child that has ended: the handle remembers its status.
        let _ = child.kill();
        let _ = child.wait();
    }

    #[allow(unsafe_code, reason = "the standard library sends SIGKILL only")]
    fn signal(&self, signal: libc::c_int) {
        let mut child = self.child();
        // A child that was waited for may have passed its id on to a stranger.
        if child.try_wait().is_ok_and(|status| status.is_none()) {
            // SAFETY: kill takes plain numbers and touches no memory of ours.
            unsafe { libc::kill(self.pid, signal) };
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Job {
    command: Command,
    reply: Sender<io::Result<Child>>,
}

/// Forks on one thread that lives as long as the process: the kernel sends the parent-death signal when the *thread* that
/// forked ends, and threads of tests come and go.
fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let serve = move || {
            for job in inbox {
                let _ = job.reply.send(spawn_here(job.command));
            }
        };
        thread::Builder::new().name("kit-spawner".to_owned()).spawn(serve).expect("one more thread");
        jobs
    });
    let (reply, answer) = mpsc::channel();
    spawner.send(Job { command, reply }).map_err(io::Error::other)?;
    answer.recv().map_err(io::Error::other)?
}

#[allow(unsafe_code, reason = "the parent-death signal can only be asked for between fork and exec")]
fn spawn_here(mut command: Command) -> io::Result<Child> {
    let parent = std::process::id();
    let die_with_parent = move || {
        // SAFETY: prctl and getppid are async-signal-safe system calls on plain numbers.
        let (asked, now) = unsafe { (libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL), libc::getppid()) };
        if asked != 0 {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died before the signal was asked for.
        if u32::try_from(now) != Ok(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls; it neither allocates nor takes locks.
    unsafe { command.pre_exec(die_with_parent) };
    command.spawn()
}

/// The build folder this program was started from, else the system's temporary folder.
pub fn target_dir() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    let found = program.ancestors().find(|dir| dir.join("CACHEDIR.TAG").is_file());
    found.map_or_else(std::env::temp_dir, Path::to_path_buf)
}

/// A new folder for one process; removed when dropped. What killed test processes left behind is removed first.
pub fn work_dir(name: &str) -> TempDir {
    static SWEEP: Once = Once::new();
    let root = target_dir().join("tmp").join("kit");
    fs::create_dir_all(&root).expect("the build folder is writable");
    SWEEP.call_once(|| sweep(&root));
    let prefix = format!("{}-{name}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(&root).expect("the build folder is writable")
}

/// Removes the folders of processes that are gone; their names start with the process id.
fn sweep(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            // Another test process may sweep at the same time; one of the two wins.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs a command to its end with this on its standard input.
///
/// # Panics
/// When it cannot be started.
pub fn feed(command: &mut Command, input: &[u8]) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap_or_else(|error| panic!("{piped:?}: {error}"));
    // Who refuses the options may end before it has read anything.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("our own child")
}
