//! The routes, and the thread that serves them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::sync::oneshot;
use tracing::error;

use super::config;
use super::serve;
use super::shared::Shared;
use crate::autoscaler::status::{ApplicationStatus, AssignorErrorStatus, StateName};
use crate::plan::Decision;

/// The largest body of a request, in bytes; far above the few settings that a request may change.
const LARGEST_BODY: usize = 64 << 10;

const INDEX: &str = "partition-autoscaler\n\n\
    /metrics    metrics in the text format of Prometheus\n\
    /livez      200 while the process serves\n\
    /readyz     200 once every application is watched, with details\n\
    /v1/status  everything that is known of each application\n\
    /v1/plan    the latest decision for each application\n\
    /v1/config  the settings; PUT changes some of them\n";

/// Why the server cannot start, in one sentence.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ListenError {
    message: String,
    source: io::Error,
}

impl ListenError {
    fn new(listen: &str, source: io::Error) -> Self {
        let why = match source.kind() {
            io::ErrorKind::AddrInUse => {
                "something listens there already; stop it, or name another address (port 0 takes any free one)".to_owned()
            }
            io::ErrorKind::AddrNotAvailable => {
                "this machine does not have that address; 0.0.0.0 is any of its addresses".to_owned()
            }
            io::ErrorKind::PermissionDenied => "it is not permitted; a port above 1023 needs no right".to_owned(),
            io::ErrorKind::InvalidInput => "expected host:port".to_owned(),
            _ => format!("{source}; expected host:port of this machine, such as 0.0.0.0:9878"),
        };
        Self { message: format!("cannot listen on http.listen={listen}: {why}"), source }
    }
}

/// A running server. It ends when this is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on `http.listen` (`host:port`; port 0 = any free one) and serves from a thread of its own.
    ///
    /// # Errors
    /// If nothing can listen there.
    pub fn start(listen: &str, shared: Shared) -> Result<Self, ListenError> {
        let refused = |source| ListenError::new(listen, source);
        let listener = TcpListener::bind(listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || runtime.block_on(serve(listener, shared, stopped));
        let thread = thread::Builder::new().name("http".to_owned()).spawn(serve).map_err(refused)?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// The address that is bound, with its real port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            error!("the thread of the HTTP server had panicked");
        }
    }
}

async fn serve(listener: TcpListener, shared: Shared, stopped: oneshot::Receiver<()>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return error!(%error, "the HTTP server cannot use its socket"),
    };
    serve::serve(listener, routes(shared), stopped).await;
}

fn routes(shared: Shared) -> Router {
    Router::new()
        .route("/", get(async || INDEX))
        .route("/metrics", get(metrics))
        .route("/livez", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/v1/status", get(status))
        .route("/v1/plan", get(plan))
        .route("/v1/config", get(config::show).put(config::change))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(shared)
}

async fn metrics(State(shared): State<Shared>) -> Response {
    match shared.metrics().render() {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// Blocked, waiting or failed applications do not make a sidecar unready: a restart or another replica would not help them.
async fn readyz(State(shared): State<Shared>) -> impl IntoResponse {
    #[derive(Serialize)]
    struct Application {
        application_id: String,
        state: StateName,
        assignor_error: AssignorErrorStatus,
    }
    #[derive(Serialize)]
    struct Ready {
        ready: bool,
        missing: Vec<String>,
        applications: Vec<Application>,
    }
    let missing = shared.missing();
    let ready = missing.is_empty();
    let application = |status: ApplicationStatus| Application {
        application_id: status.application_id,
        state: status.state.name,
        assignor_error: status.assignor_error,
    };
    let applications = shared.applications().into_iter().map(application).collect();
    let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, Json(Ready { ready, missing, applications }))
}

#[derive(Serialize)]
struct Applications<T> {
    applications: Vec<T>,
}

async fn status(State(shared): State<Shared>) -> Json<Applications<ApplicationStatus>> {
    Json(Applications { applications: shared.applications() })
}

async fn plan(State(shared): State<Shared>) -> impl IntoResponse {
    #[derive(Serialize)]
    struct Plan {
        application_id: String,
        plan: Option<Decision>,
    }
    let plan = |status: ApplicationStatus| Plan { application_id: status.application_id, plan: status.plan };
    Json(Applications { applications: shared.applications().into_iter().map(plan).collect() })
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use serde_json::{Value, json};

    use super::*;
    use crate::autoscaler::status::AssignorError;
    use crate::http::Metrics;

    fn start() -> (Shared, Server) {
        let shared = Shared::new(Metrics::new().unwrap());
        let server = Server::start("127.0.0.1:0", shared.clone()).unwrap();
        (shared, server)
    }

    fn get(server: &Server, path: &str) -> (u16, String) {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut response = agent.get(format!("http://{}{path}", server.address())).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    }

    fn json_of(server: &Server, path: &str) -> (u16, Value) {
        let (code, text) = get(server, path);
        (code, serde_json::from_str(&text).unwrap())
    }

    fn blocked() -> ApplicationStatus {
        let mut status = ApplicationStatus::starting("shop", true, SystemTime::UNIX_EPOCH);
        status.state.name = StateName::Blocked;
        status.assignor_error = AssignorError::IncompleteSourceTopicMetadata.into();
        status.plan = Some(Decision::none("nothing to do"));
        status
    }

    #[test]
    fn is_ready_when_every_latch_is_dropped() {
        let (shared, server) = start();
        let topology = shared.latch("shop: the topology");
        let observation = shared.latch("shop: the first full observation");
        assert_eq!(
            json_of(&server, "/readyz"),
            (
                503,
                json!({
            "ready": false, "missing": ["shop: the topology", "shop: the first full observation"], "applications": []})
            )
        );
        drop(topology);
        assert_eq!(json_of(&server, "/readyz").1["missing"], json!(["shop: the first full observation"]));
        drop(observation);
        shared.publish(blocked());
        assert_eq!(
            json_of(&server, "/readyz"),
            (
                200,
                json!({"ready": true, "missing": [], "applications": [{
            "application_id": "shop", "state": "Blocked",
            "assignor_error": {"code": 1, "name": "INCOMPLETE_SOURCE_TOPIC_METADATA"}}]})
            )
        );
    }

    #[test]
    fn shows_a_blocked_application_with_200() {
        let (shared, server) = start();
        assert_eq!(json_of(&server, "/v1/status"), (200, json!({"applications": []})));
        let status = blocked();
        shared.publish(status.clone());
        let (code, shown) = json_of(&server, "/v1/status");
        assert_eq!(code, 200);
        assert_eq!(
            shown["applications"][0]["state"],
            json!({
            "name": "Blocked", "since": "1970-01-01T00:00:00.000Z", "details": "nothing observed yet"})
        );
        let read: Vec<ApplicationStatus> = serde_json::from_value(shown["applications"].clone()).unwrap();
        assert_eq!(read, [status]);
        let (code, plans) = json_of(&server, "/v1/plan");
        assert_eq!((code, &plans["applications"][0]["plan"]["decision"]), (200, &json!("none")));
    }

    #[test]
    fn serves_the_rest() {
        let (_shared, server) = start();
        assert_eq!(get(&server, "/livez"), (200, "ok\n".to_owned()));
        assert_eq!(get(&server, "/"), (200, INDEX.to_owned()));
        assert_eq!(get(&server, "/nope").0, 404);
        let (code, text) = get(&server, "/metrics");
        assert_eq!(code, 200);
        assert!(text.contains("partition_autoscaler_build_info{version="));
    }

    #[test]
    fn says_why_it_cannot_listen() {
        let (shared, server) = start();
        let taken = server.address().to_string();
        for (listen, part) in [(taken.as_str(), "listens there already"), ("nonsense", "expected host:port")] {
            let error = Server::start(listen, shared.clone()).err().unwrap().to_string();
            assert!(error.starts_with(&format!("cannot listen on http.listen={listen}: ")), "{error}");
            assert!(error.contains(part), "{error}");
        }
        drop(server);
        Server::start(&taken, shared).unwrap();
    }
}
