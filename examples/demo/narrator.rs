//! Tells the story: a spinner for what is under way on a terminal, plain lines otherwise.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// See the module.
pub struct Narrator {
    /// Only on a terminal.
    spinner: Option<ProgressBar>,
}

impl Narrator {
    /// Says nothing yet.
    pub fn new() -> Self {
        let spinner = io::stdout().is_terminal().then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout());
            let style = ProgressStyle::with_template("{spinner:.cyan} {wide_msg:.dim} {elapsed:.dim}");
            spinner.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        Self { spinner }
    }

    /// What is being waited for from now on, such as `starting a broker`.
    pub fn begin(&self, doing: &str) {
        match &self.spinner {
            None => print(&format!("… {doing}")),
            Some(spinner) => {
                spinner.reset_elapsed();
                spinner.set_message(doing.to_owned());
                spinner.enable_steady_tick(TICK);
            }
        }
    }

    /// What has come about.
    pub fn done(&self, what: &str) {
        self.say(&format!("✔ {what}"));
    }

    /// A line as it is.
    pub fn say(&self, line: &str) {
        match &self.spinner {
            None => print(line),
            Some(spinner) => spinner.suspend(|| print(line)),
        }
    }

    /// Nothing is waited for any more.
    pub fn end(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }

    /// The story did not come true.
    pub fn failed(&self, problem: &str) {
        self.end();
        let _ = writeln!(io::stderr(), "✘ The demo did not get to its end: {problem}"); // nobody left to tell
    }
}

/// A reader that has gone away, such as `head`, does not end the story.
fn print(line: &str) {
    let _ = writeln!(io::stdout(), "{line}");
}
