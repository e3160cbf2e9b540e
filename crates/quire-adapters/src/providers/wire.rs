//! The wires as one: for those who do not care which it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use quire_core::message::Reply;
use quire_runtime::ports::{Delta, ModelError, ModelProvider, ModelRequest};

use super::anthropic::Anthropic;
use super::gemini::Gemini;
use super::http::{BaseUrl, Server};
use super::openai::OpenAi;
use super::want::Want;

/// A provider over the network.
#[derive(Debug)]
pub(super) enum Wire {
    OpenAi(OpenAi),
    Anthropic(Anthropic),
    Gemini(Gemini),
}

impl Wire {
    pub(super) async fn ask_for(
        &self,
        request: &ModelRequest,
        want: &Want,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, ModelError> {
        match self {
            Self::OpenAi(wire) => wire.ask_for(request, want, deltas).await,
            Self::Anthropic(wire) => wire.ask_for(request, want, deltas).await,
            Self::Gemini(wire) => wire.ask_for(request, want, deltas).await,
        }
    }

    pub(super) fn refused(&self) -> BTreeMap<String, String> {
        match self {
            Self::OpenAi(wire) => wire.refused(),
            Self::Anthropic(wire) => wire.refused(),
            Self::Gemini(wire) => wire.refused(),
        }
    }

    pub(super) fn server(&self) -> (&Server, &BaseUrl) {
        match self {
            Self::OpenAi(wire) => wire.server(),
            Self::Anthropic(wire) => wire.server(),
            Self::Gemini(wire) => wire.server(),
        }
    }

    pub(super) fn into_provider(self) -> Arc<dyn ModelProvider> {
        match self {
            Self::OpenAi(wire) => Arc::new(wire),
            Self::Anthropic(wire) => Arc::new(wire),
            Self::Gemini(wire) => Arc::new(wire),
        }
    }
}
