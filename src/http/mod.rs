//! API, metrics and health over HTTP.
