//! Plays a pack's own scenarios, for whoever keeps what is expected beside them.
//!
//! Pure: texts in, texts out. Where the files lie, how they are compared and renewed is the caller's; the places are
//! `tests/<scenario>.expected` for what is told, and `tests/prompts/<scenario>/<file>` for the prompts, which are kept
//! only where that folder is.

use quire_core::diagnostic::Diagnostic;
use quire_core::pack::PackFiles;

use crate::perform::{Performance, PromptSeen, perform};
use crate::{Scenario, Secret};

/// What came of one scenario of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// What was told, a line each.
    pub told: String,
    /// Every prompt that was asked, in order.
    pub prompts: Vec<GoldenPrompt>,
    /// What no expectation can make right: lines that nobody asked for, and secrets that got about. Sentences.
    pub faults: Vec<String>,
}

/// One prompt, as it is kept in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldenPrompt {
    /// The file's name: `07-draft.txt`, `08-act-A.txt`; no two are the same.
    pub file: String,
    /// The messages as text.
    pub text: String,
}

/// Plays one scenario of a pack; `file` is the name that diagnostics carry.
///
/// # Errors
/// Every fault of the file, in its order.
pub fn play(pack: &PackFiles, file: &str, scenario: &str) -> Result<Played, Vec<Diagnostic>> {
    let scenario = Scenario::parse(file, scenario)?;
    let performance = perform(&scenario, scenario.pack.is_some().then(|| pack.clone()));
    let unasked = performance.told.iter().filter(|told| told.contains(" is not asked for: ")).cloned();
    let leaks = scenario.secrets.iter().flat_map(|secret| leaks(secret, &performance));
    let faults = unasked.chain(leaks).collect();
    let prompts = performance.prompts.iter().enumerate().map(|(index, seen)| golden(index + 1, seen)).collect();
    Ok(Played { told: performance.text(), prompts, faults })
}

fn leaks(secret: &Secret, performance: &Performance) -> Vec<String> {
    let Secret { words, readers } = secret;
    let is_written = performance.session.board().items().iter().any(|item| item.content.contains(words.as_str()));
    if !is_written {
        return vec![format!("the secret `{words}` proves nothing: no text of the session holds it")];
    }
    let may_read = |asker: &str| readers.iter().any(|reader| asker.replace(" (", "(") == *reader);
    let prompts = performance.prompts.iter().enumerate();
    prompts
        .filter(|(_, seen)| seen.text.contains(words.as_str()) && !may_read(&seen.asker))
        .map(|(index, seen)| format!("the secret `{words}` stands in prompt {} of {}", index + 1, seen.asker))
        .collect()
}

fn golden(number: usize, seen: &PromptSeen) -> GoldenPrompt {
    let asker = seen.asker.replace(" (", "-").replace(')', "").replace(['/', '\\'], "-");
    GoldenPrompt { file: format!("{number:02}-{asker}.txt"), text: seen.text.clone() }
}
