//! What every prompt must be, whoever builds it: a transcript that no provider refuses.

use std::collections::BTreeSet;

use quire_core::message::{Message, Prompt};

/// Says what is wrong with a prompt, where something is.
///
/// It begins with its one system message; no text is empty, but an assistant's that calls; each call has an id of its own
/// and is answered once, right below, in the calls' order; the last word is not the assistant's.
///
/// # Errors
/// The first fault, with the place of its message.
pub fn check(prompt: &Prompt) -> Result<(), String> {
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut open: Vec<&str> = vec![];
    for (index, message) in prompt.messages.iter().enumerate() {
        let fault = |what: &str| Err(format!("message {index} ({}): {what}", message.role()));
        if (index == 0) != matches!(message, Message::System { .. }) {
            return fault("the system message stands first, and alone");
        }
        if message.text().trim().is_empty() && message.calls().is_empty() {
            return fault("it is empty");
        }
        match message {
            Message::Tool { call_id, .. } if open.first() == Some(&call_id.as_str()) => drop(open.remove(0)),
            Message::Tool { call_id, .. } => return fault(&format!("`{call_id}` is not the call to be answered next")),
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } if !open.is_empty() => {
                return fault(&format!("the calls {open:?} above are not answered"));
            }
            Message::User { text, stable_bytes } if !text.is_char_boundary(*stable_bytes) => {
                return fault("its stable part ends inside a character");
            }
            Message::System { .. } | Message::User { .. } | Message::Assistant { .. } => {}
        }
        for call in message.calls() {
            if call.id.is_empty() || !ids.insert(&call.id) {
                return fault(&format!("the call id `{}` is not its own", call.id));
            }
            open.push(&call.id);
        }
    }
    if !open.is_empty() {
        return Err(format!("the calls {open:?} are not answered"));
    }
    match prompt.messages.last() {
        Some(Message::Assistant { .. }) => Err("the last word is the assistant's".to_owned()),
        Some(Message::System { .. } | Message::User { .. } | Message::Tool { .. }) => Ok(()),
        None => Err("it has no messages".to_owned()),
    }
}
