//! `cargo demo`: the story of the README as it happens, on a real broker and with a stock Kafka Streams application.
//!
//! Ends with 0 only if the story came true. Nothing that it starts outlives it.

mod load;
mod narrator;
mod stage;
mod story;

use std::any::Any;
use std::env;
use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::Parser;
use kit::process::target_dir;

use narrator::Narrator;

/// Grows a topic under a running Kafka Streams application and tells what happens. Takes about half a minute; the first time some
/// minutes more, to build the sidecar and to fetch Kafka with Maven.
#[derive(Debug, Parser)]
#[command(name = "demo", bin_name = "cargo demo --", version, max_term_width = 100)]
struct Arguments {
    /// Leave the sidecar out, and see the application die
    #[arg(long, conflicts_with = "keep")]
    without: bool,
    /// Leave everything running at the end, until Ctrl-C
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    // `cargo demo --keep` and `cargo demo -- --keep` are the same: the alias ends with a `--` of its own.
    let given = env::args_os().enumerate().filter(|(index, argument)| *index != 1 || argument != "--");
    let arguments = Arguments::parse_from(given.map(|(_, argument)| argument));
    let narrator = Narrator::new();
    // The kit says what went wrong by panicking; here that is one sentence and no more.
    panic::set_hook(Box::new(|_| {}));
    let told = panic::catch_unwind(AssertUnwindSafe(|| {
        if arguments.without { story::without(&narrator) } else { story::with(&narrator, arguments.keep) }
    }));
    match told.unwrap_or_else(|panic| Err(words(panic.as_ref()))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            narrator.failed(&sentence(&problem));
            ExitCode::FAILURE
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("something went wrong that says nothing about itself").to_owned()
}

/// The first line of a problem; where there is more, such as the end of a log, a file takes the whole.
fn sentence(problem: &str) -> String {
    let Some((first, _)) = problem.split_once('\n') else { return problem.to_owned() };
    let file = target_dir().join("tmp").join("demo-problem.txt");
    match fs::write(&file, problem) {
        Ok(()) => format!("{} (more in {})", first.trim_end_matches(':').trim_end_matches("; end of its log"), file.display()),
        Err(_) => problem.to_owned(),
    }
}
