//! What a broker's own request log says.

use serde::Deserialize;
use serde_json::Value;

/// A request as the broker logged it, with field names as in Kafka's protocol definition.
#[derive(Debug, Clone)]
pub struct Request {
    /// `client.id` of the sender.
    pub client_id: String,
    /// Version of the request.
    pub version: i16,
    /// User the broker took the sender for, such as `User:alice`.
    pub principal: String,
    /// Body of the request.
    pub request: Value,
    /// Body of the answer.
    pub response: Value,
}

impl Request {
    /// Names in the field `topics` of the request, in the order sent; `None` when the request asks for all topics.
    pub fn topics(&self) -> Option<Vec<&str>> {
        let topics = self.request.get("topics")?.as_array()?;
        Some(topics.iter().filter_map(|topic| topic.get("name")?.as_str()).collect())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    is_forwarded: bool,
    request_header: Header,
    request: Value,
    response: Value,
    principal: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    request_api_version: i16,
    client_id: Option<String>,
}

/// The requests of one kind in a broker's log; what a broker forwarded to the controller counts once, and the kit's own
/// requests do not count.
pub(crate) fn parse(log: &str, api: &str) -> Vec<Request> {
    let wanted = format!("\"requestApiKeyName\":\"{api}\"");
    let bodies = log.lines().filter(|line| line.contains(&wanted)).filter_map(|line| line.split_once("Completed request:"));
    // The last line may still be in the making.
    let lines = bodies.filter_map(|(_, json)| serde_json::from_str::<Line>(json).ok());
    let requests = lines.filter(|line| !line.is_forwarded).map(|line| Request {
        client_id: line.request_header.client_id.unwrap_or_default(),
        version: line.request_header.request_api_version,
        principal: line.principal,
        request: line.request,
        response: line.response,
    });
    requests.filter(|request| request.client_id != crate::CLIENT_ID).collect()
}
