//! What is asked and what is answered: the JSON of `job group`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::fixed::{self, Outcome};
use super::grouper::{Grouper, Inputs, Naming, check_size};
use super::model::{Partition, Tasks};
use super::words;

/// The inputs of a job and how it is grouped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// How partitions are given to tasks.
    pub grouper: Grouper,
    /// Whether tasks stay when a stream grows. Needed, like `stateful`, unless the other one is false or the grouper has no such rule.
    #[serde(default)]
    pub fixed_task_count: Option<bool>,
    /// Whether tasks have state that belongs to their keys. A job without is grouped as if for the first time.
    #[serde(default)]
    pub stateful: Option<bool>,
    /// The tasks in force.
    #[serde(default)]
    pub previous: Option<Tasks>,
    /// All partitions of all inputs. A second mention of one means nothing.
    pub partitions: BTreeSet<Partition>,
    /// Partitions that every task gets, whether `partitions` has them or not. One without a key bucket stands for all its buckets.
    #[serde(default)]
    pub broadcast: BTreeSet<Partition>,
    /// Whether a count may only grow by a power of two.
    #[serde(default)]
    pub power_of_two: bool,
    /// Processors of the job; only `all-ssp-to-single-task` needs them.
    #[serde(default)]
    pub processors: BTreeSet<String>,
}

/// The tasks from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// All tasks; those before if a growth is refused.
    pub tasks: Tasks,
    /// Whether they differ from those before.
    pub changed: bool,
    /// Why a growth is refused.
    pub code: Option<Code>,
    /// One sentence for people.
    pub message: String,
}

/// Why a growth is refused. Where several hold, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// A previous task is not one of this grouper, or key buckets were switched on or off.
    GrouperChanged,
    /// A stream has fewer partitions than before.
    StreamShrank,
    /// The new count is no multiple of the previous one.
    NotAMultiple,
    /// The new count is not a power of two times the previous one, as was asked.
    NotAPowerOfTwo,
    /// A new partition has keys of one that had no task of its own.
    NoParent,
}

/// What cannot be grouped at all, by anyone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Unsound {
    #[error("{field} is missing, expected true or false: whether tasks keep their partitions hangs on it; say it")]
    Undecided { field: &'static str },
    #[error(
        "processors is missing or empty, expected the ids of the processors, since all-ssp-to-single-task makes a task for each; list them"
    )]
    NoProcessors,
    #[error("processors has an empty text, expected the id of a processor; correct or remove it")]
    EmptyProcessor,
    #[error("partitions is empty, expected at least one, since all-ssp-to-single-task gives them to every task; list them")]
    NoPartitions,
    #[error(
        "broadcast is not empty, expected none with all-ssp-to-single-task, where every task has every partition anyway; move them to partitions"
    )]
    NeedlessBroadcast,
    #[error(
        "partitions: {with} has a key bucket and {without} has none, expected all or none of them to have one; correct whichever is wrong"
    )]
    MixedBuckets { with: String, without: String },
    #[error(
        "previous: {partition} stands in the tasks {first:?} and {second:?}, expected it in one task, or in all if it was broadcast; correct previous"
    )]
    SeveralTasks { partition: String, first: String, second: String },
    #[error(
        "{partitions} partitions for each of {tasks} tasks are too many, expected at most {most} in all; divide the job, or broadcast less"
    )]
    TooLarge { tasks: usize, partitions: usize, most: usize },
}

impl Code {
    /// In the order in which they count.
    pub const ALL: [Self; 5] =
        [Self::GrouperChanged, Self::StreamShrank, Self::NotAMultiple, Self::NotAPowerOfTwo, Self::NoParent];
}

impl Request {
    /// Gives every partition to a task. The answer is the same every time, in whatever order things are listed.
    pub fn group(&self) -> Result<Answer, Unsound> {
        let none = Tasks::default();
        let previous = self.previous.as_ref().unwrap_or(&none);
        let outcome = match self.grouper {
            Grouper::GroupByPartition => self.one_task_each(Naming::Number, previous)?,
            Grouper::GroupBySystemStreamPartition => self.one_task_each(Naming::Full, previous)?,
            Grouper::AllSspToSingleTask => Outcome::Grouped(self.all_to_each()?, None),
        };
        Ok(match outcome {
            Outcome::Grouped(tasks, grew) => {
                let changed = tasks != *previous;
                let message = words::summary(&tasks, previous, changed, grew);
                Answer { tasks, changed, code: None, message }
            }
            Outcome::Refused(code, message) => Answer { tasks: previous.clone(), changed: false, code: Some(code), message },
        })
    }

    fn one_task_each(&self, naming: Naming, previous: &Tasks) -> Result<Outcome, Unsound> {
        let inputs = Inputs::new(&self.partitions, &self.broadcast)?;
        if self.keeps_tasks()? && !previous.0.is_empty() {
            return fixed::group(naming, &inputs, previous, self.power_of_two);
        }
        let chosen = inputs.own.iter().map(|partition| (naming.task(partition), *partition)).collect();
        Ok(Outcome::Grouped(inputs.give(chosen)?, None))
    }

    fn keeps_tasks(&self) -> Result<bool, Unsound> {
        match (self.fixed_task_count, self.stateful) {
            (Some(false), _) | (_, Some(false)) => Ok(false),
            (Some(true), Some(true)) => Ok(true),
            (None, _) => Err(Unsound::Undecided { field: "fixed_task_count" }),
            (_, None) => Err(Unsound::Undecided { field: "stateful" }),
        }
    }

    fn all_to_each(&self) -> Result<Tasks, Unsound> {
        if self.processors.is_empty() {
            return Err(Unsound::NoProcessors);
        }
        if self.processors.contains("") {
            return Err(Unsound::EmptyProcessor);
        }
        if self.partitions.is_empty() {
            return Err(Unsound::NoPartitions);
        }
        if !self.broadcast.is_empty() {
            return Err(Unsound::NeedlessBroadcast);
        }
        check_size(self.processors.len(), self.partitions.len())?;
        Ok(Tasks(self.processors.iter().map(|processor| (format!("Task-{processor}"), self.partitions.clone())).collect()))
    }
}
