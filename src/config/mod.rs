//! What a user wrote, turned into settings that cannot be wrong.

pub mod settings;

pub use settings::Settings;
