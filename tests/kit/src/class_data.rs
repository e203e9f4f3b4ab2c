//! Class data archives. A JVM that maps one starts with about half the work, and the tests start JVMs by the dozen.

use std::path::{Path, PathBuf};

use crate::app::App;
use crate::cluster::Cluster;
use crate::jars;

/// What a JVM does about its class data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClassData {
    /// Maps the archive there is for [`jars::KAFKA`], and does without for other releases, which few tests use.
    Map,
    /// Writes an archive when it exits.
    Record(PathBuf),
}

impl ClassData {
    /// The option of the JVM; `archive` is the name of a file of [`recorded`].
    pub(crate) fn option(&self, version: &str, archive: &str) -> Result<Option<String>, jars::Error> {
        match self {
            Self::Record(dir) => Ok(Some(format!("-XX:ArchiveClassesAtExit={}", dir.join(archive).display()))),
            // A JVM that does not like an archive, say because it is a newer one, says so and starts without.
            Self::Map if version == jars::KAFKA => {
                Ok(Some(format!("-XX:SharedArchiveFile={}", recorded()?.join(archive).display())))
            }
            Self::Map => Ok(None),
        }
    }
}

/// The folder with the archives, recorded once from a broker and an application that do a little of everything.
fn recorded() -> Result<PathBuf, jars::Error> {
    let fixture = jars::fixture()?;
    let stamp = fixture.display().to_string();
    jars::once(&jars::cache().join(jars::KAFKA), "class-data", stamp, |dir| {
        record(dir);
        Ok(())
    })
}

fn record(dir: &Path) {
    let cluster = Cluster::builder().version(jars::KAFKA).record_class_data(dir).start();
    cluster.admin().create(&["orders", "payments", "customers", "products", "invoices"].map(|input| (input, 1)));
    let app =
        App::builder("class-data").client_version(jars::KAFKA).topology("kitchen-sink").record_class_data(dir).start(&cluster);
    app.wait_tasks(10);
    app.close();
    cluster.stop(1);
}
