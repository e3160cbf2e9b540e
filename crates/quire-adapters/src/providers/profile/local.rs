//! Finds servers on this machine by asking their usual ports for their models.

use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;

use super::preset::{PRESETS, Preset};
use crate::providers::http::{BaseUrl, KeyHeader, Server, ServerConfig};

/// A server on this machine answers a list at once.
const PATIENCE: Duration = Duration::from_millis(800);

/// A server that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    /// What usually stands at its port.
    pub preset: &'static Preset,
    /// Where it is.
    pub base_url: String,
    /// The models it names.
    pub models: Vec<String>,
}

/// Asks the usual ports of 127.0.0.1, all at once; what does not answer in time is not there.
pub async fn find_local() -> Vec<LocalServer> {
    let ports = PRESETS.iter().filter_map(|preset| Some((preset, preset.local_port?)));
    find_at(ports).await
}

/// Asks these ports.
pub(super) async fn find_at(ports: impl IntoIterator<Item = (&'static Preset, u16)>) -> Vec<LocalServer> {
    let asked = ports.into_iter().map(|(preset, port)| async move {
        let base_url = format!("http://127.0.0.1:{port}/v1");
        let models = tokio::time::timeout(PATIENCE, models(&base_url)).await.ok().flatten()?;
        Some(LocalServer { preset, base_url, models })
    });
    join_all(asked).await.into_iter().flatten().collect()
}

async fn models(base_url: &str) -> Option<Vec<String>> {
    let base_url = BaseUrl::parse(base_url, "v1", "/models").ok()?;
    let target = base_url.route("models");
    let config = ServerConfig {
        base_url: &base_url,
        target: target.clone(),
        key: None,
        key_header: KeyHeader::Bearer,
        headers: &[],
        silence_max: PATIENCE,
    };
    let document = Server::new(config).ok()?.document(&target, None).await.ok()?;
    let list = document.get("data")?.as_array()?;
    Some(list.iter().filter_map(|model| model.get("id").and_then(Value::as_str)).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use quire_testkit::fake_model::FakeModel;
    use serde_json::json;

    use super::find_at;
    use crate::providers::profile::preset;

    #[tokio::test]
    async fn a_server_is_found_by_its_list_of_models() {
        let server = FakeModel::start().await;
        server.document("/v1/models", json!({"object": "list", "data": [{"id": "small"}, {"id": "大"}]}));
        let other = FakeModel::start().await;
        let port = |server: &FakeModel| server.url().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let ollama = preset("ollama").expect("a preset");
        let found = find_at([(ollama, port(&server)), (ollama, port(&other))]).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].models, ["small", "大"]);
    }
}
