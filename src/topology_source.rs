//! Fetches the text of `Topology#describe()`: from a file, from standard input, or from the application over HTTP.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use crate::regular;

/// Largest text that is read, in bytes. Applications with hundreds of nodes print well under 1 MiB.
pub const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// How long connecting, and waiting for each part of the answer, may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no text. Every message names the file or URL, what was expected and what to do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SourceError {
    #[error("cannot read {name}: {error}; expected a file that exists and may be read, correct its path{tried}")]
    Unreadable { name: String, error: io::Error, tried: String },
    #[error("{name} is larger than {MAX_BYTES} bytes, expected the text of Topology#describe()")]
    TooLarge { name: String },
    #[error(
        "{name}, line {line}: found bytes that are not UTF-8, expected the text of Topology#describe() (\"Topologies:\" or \"Sub-topology: N\")"
    )]
    NotText { name: String, line: usize },
    #[error(
        "{url} cannot be fetched: {reason}; expected the http:// or https:// address of the running application: start it, or correct the address"
    )]
    Unreachable { url: String, reason: String },
    #[error("{url} answered {status}, expected 200 with the text of Topology#describe(); check the path of the address")]
    Status { url: String, status: String },
    #[error("{url} answered with an empty body, expected the text of Topology#describe(); check the path of the address")]
    Empty { url: String },
}

/// The text of a file, or of standard input for `-`.
pub fn read(path: &Path) -> Result<String, SourceError> {
    text_of(path, if path == Path::new("-") { limited(io::stdin().lock()) } else { File::open(path).and_then(limited) })
}

/// The text of a file that is read again when it changes, so it has to be a regular one.
pub fn read_regular(path: &Path) -> Result<String, SourceError> {
    text_of(path, regular::open(path).and_then(limited))
}

fn text_of(path: &Path, bytes: io::Result<Vec<u8>>) -> Result<String, SourceError> {
    let name = name(path);
    match bytes {
        Ok(bytes) => text(name, bytes),
        Err(error) => Err(SourceError::Unreadable { name, error, tried: tried(path) }),
    }
}

/// Where a relative path leads, to follow the words "correct its path".
fn tried(path: &Path) -> String {
    match std::path::absolute(path) {
        Ok(absolute) if path.is_relative() && path != Path::new("-") => {
            format!(" (a relative path starts at the working directory, so {} was tried)", absolute.display())
        }
        _ => String::new(),
    }
}

/// What a file is called in messages.
pub fn name(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

/// The body of a URL. Blocks for as long as its timeouts allow (10 s for each step).
pub fn fetch(url: &str) -> Result<String, SourceError> {
    let shown = without_credentials(url);
    let unreachable = |error: ureq::Error| match error {
        ureq::Error::BodyExceedsLimit(_) => SourceError::TooLarge { name: shown.clone() },
        ureq::Error::Io(error) => SourceError::Unreachable { url: shown.clone(), reason: error.to_string() },
        error => SourceError::Unreachable { url: shown.clone(), reason: error.to_string() },
    };
    let mut response = agent().get(url).call().map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(SourceError::Status { url: shown, status: response.status().to_string() });
    }
    let bytes = response.body_mut().with_config().limit(MAX_BYTES).read_to_vec().map_err(unreachable)?;
    if bytes.trim_ascii().is_empty() {
        return Err(SourceError::Empty { url: shown });
    }
    text(shown, bytes)
}

fn agent() -> ureq::Agent {
    // Certificates are checked as the rest of the system does, so that a private authority needs no setting of ours.
    let tls = TlsConfig::builder().provider(TlsProvider::NativeTls).root_certs(RootCerts::PlatformVerifier).build();
    ureq::Agent::config_builder()
        .timeout_resolve(Some(TIMEOUT))
        .timeout_connect(Some(TIMEOUT))
        .timeout_recv_response(Some(TIMEOUT))
        .timeout_recv_body(Some(TIMEOUT))
        .http_status_as_error(false)
        .tls_config(tls)
        .build()
        .into()
}

/// The URL for messages: a password in it must not end up in a log.
pub fn without_credentials(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((credentials, _)) => format!("{scheme}://{}", rest.get(credentials.len() + 1..).unwrap_or_default()),
        None => url.to_owned(),
    }
}

/// Reads one byte more than is allowed, which shows that there is more.
fn limited(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(name: String, bytes: Vec<u8>) -> Result<String, SourceError> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(SourceError::TooLarge { name });
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        SourceError::NotText { name, line: 1 + good.iter().filter(|&&b| b == b'\n').count() }
    })
}
