//! Points at which a debug build can be made to stand still, as a suspended virtual machine does, so that tests see what becomes of
//! a sidecar that wakes up after its successor has acted. A release build has none of it.

/// Stops this process, once, if `PARTITION_AUTOSCALER_PAUSE_AT` names the point. It goes on with `SIGCONT`.
#[cfg(debug_assertions)]
#[allow(unsafe_code, reason = "the standard library raises no signals")]
pub(crate) fn reached(point: &str) {
    static DONE: std::sync::Once = std::sync::Once::new();
    if std::env::var("PARTITION_AUTOSCALER_PAUSE_AT").is_ok_and(|wanted| wanted == point) {
        // SAFETY: raise takes a plain number and touches no memory of ours. It fails for unknown signals only.
        DONE.call_once(|| {
            let _ = unsafe { libc::raise(libc::SIGSTOP) };
        });
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
pub(crate) fn reached(_point: &str) {}
