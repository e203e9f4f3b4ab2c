//! Kafka's jars and the compiled fixture, fetched and built once per machine.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;

/// The release everything runs with unless a test or the environment says otherwise.
pub const KAFKA: &str = "4.4.0";

/// Release of brokers: `PARTITION_AUTOSCALER_BROKER`, else [`KAFKA`].
pub(crate) fn broker() -> String {
    std::env::var("PARTITION_AUTOSCALER_BROKER").unwrap_or_else(|_| KAFKA.to_owned())
}

/// Release of the Streams library of applications: `PARTITION_AUTOSCALER_CLIENT`, else [`KAFKA`].
pub(crate) fn client() -> String {
    std::env::var("PARTITION_AUTOSCALER_CLIENT").unwrap_or_else(|_| KAFKA.to_owned())
}

const ROOM: &str = env!("CARGO_MANIFEST_DIR");

/// Why the jars or the fixture are not there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A program of the Java tool chain is not installed.
    #[error("`{0}` is not installed, and real Kafka needs it: apt-get install -y openjdk-17-jdk-headless maven")]
    Missing(&'static str),
    /// A program of the Java tool chain failed.
    #[error("`{program}` failed: {output}")]
    Failed {
        /// The program.
        program: &'static str,
        /// What it printed.
        output: String,
    },
    /// The cache folder cannot be used.
    #[error("the Kafka cache {path} cannot be used: {source}; PARTITION_AUTOSCALER_KAFKA_CACHE names another folder")]
    Cache {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The folder with all jars of one Kafka release: broker, tools and Streams.
pub fn kafka(version: &str) -> Result<PathBuf, Error> {
    let pom = Path::new(ROOM).join("pom.xml");
    let dir = cache().join(version);
    once(&dir, "lib", content_hash(&[&pom])?, |lib| {
        need("java")?; // Maven would say so in words of its own
        let mut maven = Command::new("mvn");
        maven.args(["-B", "-q", "-f"]).arg(&pom).arg(format!("-Dkafka.version={version}"));
        maven.arg("org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies");
        // Kafka 3.9 brings the slf4j binding of log4j 1 along; the kit reads the logs of slf4j-simple.
        maven.arg("-DexcludeArtifactIds=slf4j-reload4j").arg(format!("-DoutputDirectory={}", lib.display()));
        run("mvn", maven)
    })
}

/// The jar of the fixture, compiled against [`KAFKA`].
pub fn fixture() -> Result<PathBuf, Error> {
    let mut sources: Vec<PathBuf> = read_dir(&Path::new(ROOM).join("../fixture/src"))?;
    sources.sort();
    compiled("fixture", &sources)
}

/// A jar with these Java sources, compiled against [`KAFKA`].
pub fn compiled(name: &str, sources: &[PathBuf]) -> Result<PathBuf, Error> {
    let hash = content_hash(sources)?;
    let lib = kafka(KAFKA)?;
    let jar_file = format!("{name}.jar");
    let dir = once(&cache(), &format!("{name}-{hash}"), hash.clone(), |dir| {
        let classes = dir.join("classes");
        let mut javac = Command::new("javac");
        // 4.0 clients run on Java 11; the classes must load wherever the jars do.
        javac.args(["-Xlint:all,-processing", "-Werror", "--release", "11", "-cp"]).arg(lib.join("*"));
        javac.arg("-d").arg(&classes).args(sources);
        run("javac", javac)?;
        // Only jars can be in a class data archive.
        let mut jar = Command::new("jar");
        jar.arg("--create").arg("--file").arg(dir.join(&jar_file)).arg("-C").arg(classes).arg(".");
        run("jar", jar)
    })?;
    Ok(dir.join(jar_file))
}

/// A JVM with `heap` megabytes, tuned to start fast and stay small, and the jars of Kafka `version` after the `program`.
pub fn java(heap: u32, version: &str, program: Option<&Path>) -> Result<Command, Error> {
    need("java")?;
    let lib = kafka(version)?.join("*");
    let class_path = program.map_or_else(|| lib.display().to_string(), |jar| format!("{}:{}", jar.display(), lib.display()));
    let mut java = Command::new("java");
    java.arg(format!("-Xmx{heap}m")).args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]);
    java.args(["-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]);
    java.arg("-cp").arg(class_path);
    Ok(java)
}

/// Whoever starts a program that is missing hears of a missing file only, so it is looked for before.
fn need(program: &'static str) -> Result<(), Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if found { Ok(()) } else { Err(Error::Missing(program)) }
}

/// Runs a program to its end.
pub(crate) fn run(program: &'static str, mut command: Command) -> Result<(), Error> {
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Missing(program),
        _ => Error::Failed { program, output: error.to_string() },
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    Err(Error::Failed { program, output: String::from_utf8_lossy(&text).trim().to_owned() })
}

/// Where everything of one Kafka release is kept.
pub(crate) fn cache() -> PathBuf {
    std::env::var_os("PARTITION_AUTOSCALER_KAFKA_CACHE").map_or_else(|| process::target_dir().join("kafka"), PathBuf::from)
}

/// Fills `dir/name` with `fill` unless it is there with the same `stamp`. Test processes run side by side, so a lock lets one
/// of them work, and the folder appears complete or not at all.
pub(crate) fn once(
    dir: &Path,
    name: &str,
    stamp: String,
    fill: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let cannot_use = |source| Error::Cache { path: dir.to_owned(), source };
    let done = dir.join(name);
    let is_done = || fs::read_to_string(done.join(".complete")).is_ok_and(|found| found == stamp);
    if is_done() {
        return Ok(done);
    }
    fs::create_dir_all(dir).map_err(cannot_use)?;
    let lock = File::create(dir.join(format!("{name}.lock"))).map_err(cannot_use)?;
    lock.lock().map_err(cannot_use)?;
    if is_done() {
        return Ok(done);
    }
    let partial = tempfile::Builder::new().prefix("partial-").tempdir_in(dir).map_err(cannot_use)?;
    fill(partial.path())?;
    fs::write(partial.path().join(".complete"), &stamp).map_err(cannot_use)?;
    if done.exists() {
        fs::remove_dir_all(&done).map_err(cannot_use)?;
    }
    fs::rename(partial.keep(), &done).map_err(cannot_use)?;
    Ok(done)
}

fn content_hash(files: &[impl AsRef<Path>]) -> Result<String, Error> {
    let mut hasher = DefaultHasher::new();
    for file in files {
        let file = file.as_ref();
        let text = fs::read(file).map_err(|source| Error::Cache { path: file.to_owned(), source })?;
        text.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

fn read_dir(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.map_err(|source| Error::Cache { path: dir.to_owned(), source })
}
