//! The models: each provider's dialect on one side, [`quire_runtime::ports::ModelProvider`] on the other.
//!
//! Three wires ([`openai`], [`anthropic`], [`gemini`]) share one way to reach a server and one way to read its stream; what
//! differs is the body of a request and the meaning of a document. Profiles ([`profile`]) say which model is reached how,
//! [`probe`] finds out what it can do, [`tape`] records and replays, [`scripted`] plays a scenario.

pub mod anthropic;
pub mod gemini;
mod http;
pub mod openai;
pub mod price;
pub mod probe;
pub mod profile;
mod reasoning;
mod refusals;
pub mod scripted;
mod sse;
mod stream;
pub mod tape;
mod thinking;
mod tool_mode;
mod transcript;
mod want;
mod wire;
mod words;

use std::time::Duration;

pub use http::SetupError;
pub use reasoning::shown as shown_reasoning;
pub use stream::Interruption;
pub use tool_mode::ToolMode;

/// How long a server may be silent where the profile does not say.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// What is kept free for the reply where the profile does not say.
const RESERVED_TOKENS_MAX: u32 = 8192;

/// The most tokens of a reply where the profile does not say and the wire needs a number.
fn output_tokens(context_tokens: u32, output_tokens_max: Option<u32>) -> u32 {
    output_tokens_max.unwrap_or((context_tokens / 4).min(RESERVED_TOKENS_MAX))
}

/// What a prompt may take, so that the reply has room too.
fn prompt_tokens_max(context_tokens: u32, output_tokens_max: Option<u32>) -> u32 {
    context_tokens.saturating_sub(output_tokens(context_tokens, output_tokens_max).min(RESERVED_TOKENS_MAX))
}

#[cfg(test)]
mod tests {
    use super::prompt_tokens_max;

    #[test]
    fn the_prompt_leaves_room_for_the_reply() {
        assert_eq!(prompt_tokens_max(8_000, None), 6_000);
        assert_eq!(prompt_tokens_max(128_000, None), 119_808);
        assert_eq!(prompt_tokens_max(8_000, Some(1_000)), 7_000);
    }
}
