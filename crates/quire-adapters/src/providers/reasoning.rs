//! Reasoning as it is stored: word for word, and with what its provider wants back with it.
//!
//! Plain reasoning is stored as the text it is. Some providers sign theirs and take it back only whole; that is stored as
//! one JSON object in the same place:
//!
//! ```json
//! {"quire_reasoning": "the text", "wire": "anthropic", "model": "the-model", "parts": [{"type": "thinking", "thinking": "the text", "signature": "…"}]}
//! ```
//!
//! `parts` is the wire's own business. They go back to the same wire and model only: another one would refuse them.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

const MARK: &str = "{\"quire_reasoning\":";

/// Signed reasoning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Signed {
    quire_reasoning: String,
    wire: String,
    model: String,
    parts: Vec<Value>,
}

/// Makes what is stored. Without parts it is the text.
pub(super) fn stored(wire: &str, model: &str, text: String, parts: Vec<Value>) -> Arc<str> {
    if parts.is_empty() {
        return text.into();
    }
    let signed = Signed { quire_reasoning: text, wire: wire.to_owned(), model: model.to_owned(), parts };
    serde_json::to_string(&signed).expect("reasoning is plain data").into()
}

/// Returns the parts that go back to a wire and model; none where they are another's.
pub(super) fn parts(stored: &str, wire: &str, model: &str) -> Vec<Value> {
    signed(stored).filter(|signed| signed.wire == wire && signed.model == model).map(|signed| signed.parts).unwrap_or_default()
}

/// Returns the reasoning that a person reads.
pub fn shown(stored: &str) -> Cow<'_, str> {
    match signed(stored) {
        Some(signed) => Cow::Owned(signed.quire_reasoning),
        None => Cow::Borrowed(stored),
    }
}

fn signed(stored: &str) -> Option<Signed> {
    stored.starts_with(MARK).then(|| serde_json::from_str(stored).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{parts, shown, stored};

    #[test]
    fn signed_reasoning_goes_back_to_its_own_model_only() {
        let plain = stored("anthropic", "m", "先想".to_owned(), vec![]);
        assert_eq!((&*plain, &*shown(&plain)), ("先想", "先想"));
        let signed = stored("anthropic", "m", "先想".to_owned(), vec![json!({"signature": "s"})]);
        assert_eq!(&*shown(&signed), "先想");
        assert_eq!(parts(&signed, "anthropic", "m"), [json!({"signature": "s"})]);
        assert_eq!(parts(&signed, "anthropic", "other"), Vec::<serde_json::Value>::new());
        assert_eq!(parts(&plain, "anthropic", "m"), Vec::<serde_json::Value>::new());
    }
}
