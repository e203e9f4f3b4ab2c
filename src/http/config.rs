//! `/v1/config`: the settings, and their change in the running process.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, FromRequest as _, Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::warn;

use super::serve::PATIENCE;
use super::shared::Shared;
use crate::config::Secret;

/// Between two lines that say who is refused.
const QUIET: Duration = Duration::from_secs(10);

/// Settings that somebody wants changed.
pub struct Change {
    /// By key, as they were written.
    pub settings: BTreeMap<String, Value>,
    /// Who asks.
    pub from: SocketAddr,
    /// What is wrong with them, or nothing once they are in force.
    pub answer: oneshot::Sender<Result<(), String>>,
}

/// Who may change something, and who does it.
#[derive(Clone)]
pub(super) struct Remote {
    pub(super) token: Secret,
    pub(super) changes: UnboundedSender<Change>,
    pub(super) refusals: Arc<Mutex<Refusals>>,
}

/// Requests without the token. Only some are logged, since anybody may send any number.
#[derive(Default)]
pub(super) struct Refusals {
    said: Option<Instant>,
    left_out: u64,
}

impl Refusals {
    /// Counts one more. How many were left out since the last line, if it is time for the next.
    fn count(&mut self, now: Instant) -> Option<u64> {
        if self.said.is_some_and(|said| now.duration_since(said) < QUIET) {
            self.left_out += 1;
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

/// What a line adds about those before it.
fn since_then(left_out: u64) -> String {
    if left_out == 0 { String::new() } else { format!("; {left_out} more were refused since the last line like this") }
}

/// `GET /v1/config`
pub(super) async fn show(State(shared): State<Shared>) -> Response {
    match shared.config() {
        Some(config) => Json(config).into_response(),
        None => refusal(StatusCode::SERVICE_UNAVAILABLE, "the configuration is not known yet, try again"),
    }
}

/// `PUT /v1/config`
pub(super) async fn change(
    State(shared): State<Shared>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let body = match timeout(PATIENCE, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => body,
        Ok(Err(rejection)) => return rejection.into_response(),
        Err(_) => {
            let message = format!("the body of the request did not arrive within {} s", PATIENCE.as_secs());
            return refusal(StatusCode::REQUEST_TIMEOUT, &message);
        }
    };
    let Some(remote) = shared.remote() else {
        let message = "nothing can be changed by a request, because http.token.file is not set; set it, or change the file";
        return refusal(StatusCode::FORBIDDEN, message);
    };
    if !bearer(&headers).is_some_and(|token| remote.token.is(token)) {
        if let Some(left_out) = remote.refusals.lock().unwrap_or_else(PoisonError::into_inner).count(Instant::now()) {
            warn!(%from, left_out, "PUT /v1/config from {from} is refused: it does not bear the token{}", since_then(left_out));
        }
        let refusal = refusal(StatusCode::UNAUTHORIZED, "expected the content of http.token.file as Authorization: Bearer");
        return ([(WWW_AUTHENTICATE, "Bearer")], refusal).into_response();
    }
    let settings = match serde_json::from_slice(&body) {
        Ok(settings) => settings,
        Err(error) => {
            let message =
                format!("the request is no JSON object of settings ({error}), expected e.g. {{\"log.level\": \"debug\"}}");
            return refusal(StatusCode::BAD_REQUEST, &message);
        }
    };
    let (answer, answered) = oneshot::channel();
    // who does it may have ended, then no answer comes either
    let _ = remote.changes.send(Change { settings, from, answer });
    match answered.await {
        Ok(Ok(())) => show(State(shared)).await,
        Ok(Err(message)) => refusal(StatusCode::BAD_REQUEST, &message),
        Err(_) => refusal(StatusCode::SERVICE_UNAVAILABLE, "the sidecar is ending, nothing was changed"),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn refusal(code: StatusCode, message: &str) -> Response {
    (code, Json(json!({"error": message}))).into_response()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::http::{Metrics, Server};

    /// `PUT` with this header and body: status and answer.
    fn put(server: &Server, authorization: Option<&str>, body: &str) -> (u16, Value) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut request = agent.put(format!("http://{}/v1/config", server.address()));
        if let Some(authorization) = authorization {
            request = request.header("Authorization", authorization);
        }
        let mut answer = request.send(body).unwrap();
        (answer.status().as_u16(), answer.body_mut().read_json().unwrap())
    }

    #[test]
    fn a_flood_of_refusals_is_told_once_in_a_while() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        let told = [0, 1, 9, 10, 11, 21].map(|s| refusals.count(start + Duration::from_secs(s)));
        assert_eq!(told, [Some(0), None, None, Some(2), None, Some(1)]);
        assert_eq!([0, 2].map(since_then), ["", "; 2 more were refused since the last line like this"]);
    }

    #[test]
    fn only_who_bears_the_token_changes_something() {
        let shared = Shared::new(Metrics::new().unwrap());
        let server = Server::start("127.0.0.1:0", shared.clone()).unwrap();
        let (code, answer) = put(&server, Some("Bearer hunter2"), "{}");
        assert_eq!(code, 403);
        assert!(answer["error"].as_str().unwrap().contains("http.token.file is not set"), "{answer}");

        let mut changes = shared.accept(Secret::from("hunter2".to_owned()));
        for authorization in [None, Some("hunter2"), Some("Basic hunter2"), Some("Bearer hunter"), Some("Bearer ")] {
            assert_eq!(put(&server, authorization, "{}").0, 401, "{authorization:?}");
        }
        for body in ["", "[]", "{\"log.level\"", "1"] {
            let (code, answer) = put(&server, Some("Bearer hunter2"), body);
            assert_eq!(code, 400, "{body}: {answer}");
        }
        assert!(changes.try_recv().is_err(), "nothing of that came through");

        let done = {
            let shared = shared.clone();
            thread::spawn(move || {
                for outcome in [Err("log.level: is wrong".to_owned()), Ok(())] {
                    let change: Change = changes.blocking_recv().unwrap();
                    assert_eq!(change.settings, BTreeMap::from([("log.level".to_owned(), json!("debug"))]));
                    shared.publish_config(json!({"applications": []}));
                    change.answer.send(outcome).unwrap();
                }
            })
        };
        let body = r#"{"log.level": "debug"}"#;
        assert_eq!(put(&server, Some("Bearer hunter2"), body), (400, json!({"error": "log.level: is wrong"})));
        assert_eq!(put(&server, Some("bearer hunter2"), body), (200, json!({"applications": []})));
        done.join().unwrap();
        let (code, answer) = put(&server, Some("Bearer hunter2"), body);
        assert_eq!(code, 503, "{answer}");
    }
}
