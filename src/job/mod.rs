//! SEP-5: which task of a job consumes which partitions, and how that stays right when a topic grows.
//!
//! Pure. [`Request::group`] gives the partitions of the inputs to tasks by one of Samza's groupers. With the fixed-task-count rule
//! (`fixed`) a partition keeps its task, and a new one goes to the task of its parent, so every key stays where its state is.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let request: partition_autoscaler::job::Request = serde_json::from_str(
//!     r#"{"grouper": "group-by-partition", "fixed_task_count": true, "stateful": true,
//!         "previous": {"Partition 0": [["kafka", "orders", 0]]},
//!         "partitions": [["kafka", "orders", 0], ["kafka", "orders", 1]]}"#,
//! )?;
//! assert_eq!(request.group()?.tasks.0["Partition 0"].len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! [`assignment`] is how the result is remembered, in the rows that Samza writes into its coordinator stream.

pub mod assignment;
mod fixed;
mod grouper;
mod model;
mod request;
mod words;

pub use assignment::Assignment;
pub use grouper::Grouper;
pub use model::{MAX_NUMBER, Partition, Tasks};
pub use request::{Answer, Code, Request, Unsound};
