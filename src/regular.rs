//! Opens files that are read again and again.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a regular file, and nothing that could block or never end.
///
/// # Errors
/// If it cannot be opened, or is a pipe, a socket or a device. A directory is opened: that it is one comes out when it is read.
pub fn open(path: &Path) -> io::Result<File> {
    // Without the flag, a pipe is not open before somebody opens its other end.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_dir() {
        Ok(file)
    } else {
        Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file, and a pipe or a device cannot be read again"))
    }
}
