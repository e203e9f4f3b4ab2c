//! Every command answers bad input with one sentence that names the thing, what was expected and what to do, with the right exit
//! code, and without having changed anything. What each says stands in `tests/golden/bad_input`.

mod brokers;
mod files;
mod old_broker;

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use expect_test::expect_file;
use kit::process::Process;
use kit::wait::PATIENCE;
use regex::Regex;
use tempfile::TempDir;

use crate::stage::BINARY;

/// What the shop of these tests prints.
const TOPOLOGY: &str = "\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [bad.orders])
      --> KSTREAM-SINK-0000000001
    Sink: KSTREAM-SINK-0000000001 (topic: by-customer-repartition)
      <-- KSTREAM-SOURCE-0000000000

  Sub-topology: 1
    Source: KSTREAM-SOURCE-0000000002 (topics: [by-customer-repartition])
      --> KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [counts])
      --> none
      <-- KSTREAM-SOURCE-0000000002

";

/// A folder with files, in which commands are run, and what they said.
struct Desk {
    dir: TempDir,
    said: String,
    hidden: Vec<(String, &'static str)>,
}

impl Desk {
    /// With the text of the topology in `shop.txt`.
    fn new() -> Self {
        let desk = Self { dir: tempfile::tempdir().unwrap(), said: String::new(), hidden: Vec::new() };
        let folder = desk.path().display().to_string();
        desk.hide(folder, "FOLDER").with("shop.txt", TOPOLOGY)
    }

    fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.dir.path().join(name), text).unwrap();
        self
    }

    /// A configuration `shop.toml` with these brokers, and `more` of it.
    fn with_config(self, brokers: &str, more: &str) -> Self {
        let text = format!(
            "bootstrap.servers = \"{brokers}\"\napplication.id = \"bad\"\npartition.autoscaling.enabled = true\n\
             http.listen = \"127.0.0.1:0\"\nleader.election = \"none\"\n{more}\n"
        );
        self.with("shop.toml", text)
    }

    /// Shows `shown` wherever `text` is said.
    fn hide(mut self, text: impl Into<String>, shown: &'static str) -> Self {
        self.hidden.push((text.into(), shown));
        self
    }

    /// Runs the program to its end, and notes what it says. `arguments` are separated by spaces.
    fn run(&mut self, arguments: &str) -> &mut Self {
        let output = |name: &str| File::create(self.path().join(name)).unwrap();
        let mut command = Command::new(BINARY);
        command.args(arguments.split(' ')).env_clear().current_dir(self.path());
        command.stdin(Stdio::null()).stdout(output(".stdout")).stderr(output(".stderr"));
        let status = Process::start(arguments, command).wait_exit(PATIENCE);
        let read = |name: &str| fs::read_to_string(self.path().join(name)).unwrap();
        let (stdout, stderr) = (read(".stdout"), read(".stderr"));
        let code = status.code().map_or("a signal".to_owned(), |code| code.to_string());
        let said = format!("$ partition-autoscaler {arguments}\n{stdout}{stderr}exit code {code}\n\n");
        self.said += &self.normal(&said);
        self
    }

    /// Each of the commands that work on an application.
    fn run_each(&mut self, commands: &[&str]) -> &mut Self {
        for command in commands {
            self.run(&format!("{command} --config shop.toml"));
        }
        self
    }

    fn note(&mut self, text: &str) -> &mut Self {
        let text = self.normal(text);
        writeln!(self.said, "{text}\n").unwrap();
        self
    }

    fn normal(&self, text: &str) -> String {
        let time = Regex::new(r"(?m)^\d{4}-\d\d-\d\dT[\d:.]+Z +").unwrap();
        let mut text = time.replace_all(text, "").into_owned();
        for (hidden, shown) in &self.hidden {
            text = text.replace(hidden, shown);
        }
        let own = Regex::new(r"(listening on http://127\.0\.0\.1:|listening .*address=127\.0\.0\.1:)\d+").unwrap();
        while own.is_match(&text) {
            text = own.replace_all(&text, "${1}PORT").into_owned();
        }
        text
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Compares with the golden file.
    fn check(&self, name: &str) {
        let golden = format!("{}/tests/golden/bad_input/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        expect_file![golden].assert_eq(&format!("{}\n", self.said.trim_end()));
    }
}

const ALL: &[&str] = &["run", "plan", "snapshot", "topology"];
const FROM_CLUSTER: &[&str] = &["plan", "snapshot"];
