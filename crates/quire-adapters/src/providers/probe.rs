//! Finds out what a model can do, by asking it, and keeps the provider's own words about what it cannot.
//!
//! Some fifteen small requests. What is asked goes through the same adapter that a session uses, so what works here works
//! there. A model that did not do as told once is written down as one that cannot: no trust in what is merely accepted.

use std::collections::BTreeMap;
use std::sync::Mutex;

use quire_core::ids::{CallId, SessionId};
use quire_core::message::{FailureKind, Message, OfferedTool, Reply, ToolSpec};
use quire_core::reply;
use quire_runtime::ports::{Asker, Delta, ModelError, ModelRequest};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::http::{SetupError, lock};
use super::profile::{Kind, Profile};
use super::tool_mode::ToolMode;
use super::want::Want;
use super::wire::Wire;
use super::words::excerpt;

/// Enough for a model that thinks first; small answers cost little of it.
const OUTPUT_TOKENS_MAX: u32 = 2_048;
/// A prompt that providers find worth keeping: they do from 1,024 tokens on.
const LONG_PROMPT_LINES: usize = 160;

/// One thing a model can or cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// It answers.
    Chat,
    /// It answers piece by piece.
    Streaming,
    /// It calls a tool when told to.
    NativeTools,
    /// It can be made to call one tool.
    ForcedTool,
    /// It calls several tools in one reply.
    ParallelCalls,
    /// It holds to a JSON schema.
    JsonSchema,
    /// It can be made to write JSON.
    JsonObject,
    /// It shows its reasoning.
    Reasoning,
    /// It counts tokens.
    Usage,
    /// It counts tokens read from a cache.
    CachedTokens,
    /// It tells the size of its context.
    ContextSize,
}

/// Whether it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It did.
    Yes,
    /// It did not, or was refused.
    No,
    /// It was not asked, or failed for another reason.
    Unclear,
}

/// What was found of one ability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The ability.
    pub ability: Ability,
    /// Whether it is there.
    pub verdict: Verdict,
    /// What was seen, or the provider's own words.
    pub words: String,
}

/// All that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// One for each ability, in the order of [`Ability`].
    pub findings: Vec<Finding>,
    /// Parameters that were refused, each with the provider's words.
    pub refused: BTreeMap<String, String>,
    /// How calls are best asked for.
    pub tool_mode: ToolMode,
    /// The size of the context, where the server tells it.
    pub context_tokens: Option<u32>,
}

impl ProbeReport {
    /// Returns what was found of an ability.
    pub fn verdict(&self, ability: Ability) -> Verdict {
        self.findings.iter().find(|finding| finding.ability == ability).map_or(Verdict::Unclear, |finding| finding.verdict)
    }
}

static NOTE: ToolSpec = ToolSpec {
    name: "note",
    description: "Notes one word.",
    parameters: r#"{"type":"object","properties":{"word":{"type":"string"}},"required":["word"],"additionalProperties":false}"#,
};

/// Asks a profile's model what it can do.
///
/// # Errors
/// [`SetupError`] when the profile's address or key cannot be used. A server that does not answer is a finding.
pub async fn probe(profile: &Profile, key: Option<SecretString>) -> Result<ProbeReport, SetupError> {
    let mut probe = Probe::new(profile, key);
    if probe.chat().await? {
        probe.streaming().await?;
        probe.tools().await?;
        probe.json().await?;
        probe.cache().await?;
        probe.context().await?;
    }
    Ok(probe.report())
}

struct Probe {
    profile: Profile,
    key: Option<SecretString>,
    findings: BTreeMap<Ability, (Verdict, String)>,
    refused: BTreeMap<String, String>,
    context_tokens: Option<u32>,
}

/// What came of one request.
struct Seen {
    answer: Result<Reply, ModelError>,
    /// Pieces of text or reasoning.
    piece_count: usize,
    /// What this request alone was refused.
    refused: BTreeMap<String, String>,
}

impl Seen {
    /// The words in which a parameter was refused, or the whole.
    fn refusal(&self, parameter: &str) -> Option<String> {
        self.refused.get(parameter).cloned().or_else(|| Some(self.answer.as_ref().err()?.failure.message.clone()))
    }

    fn said(&self) -> String {
        match &self.answer {
            Ok(reply) if !reply.calls.is_empty() => {
                let calls = reply.calls.iter().map(|call| format!("{}({})", call.name, excerpt(&call.arguments)));
                calls.collect::<Vec<_>>().join(", ")
            }
            Ok(reply) if reply.text.trim().is_empty() => "it said nothing".to_owned(),
            Ok(reply) => format!("“{}”", excerpt(&reply.text)),
            Err(error) => error.failure.message.clone(),
        }
    }
}

impl Probe {
    fn new(profile: &Profile, key: Option<SecretString>) -> Self {
        let mut profile = profile.clone();
        // What is to be found out must not be decided before.
        profile.tool_mode = ToolMode::Native;
        profile.refused.clear();
        profile.output_tokens_max = Some(profile.output_tokens_max.unwrap_or(OUTPUT_TOKENS_MAX).min(OUTPUT_TOKENS_MAX));
        Self { profile, key, findings: BTreeMap::new(), refused: BTreeMap::new(), context_tokens: None }
    }

    /// Asks once, with nothing learnt before: a refusal must be seen by the one who asked for it.
    async fn ask(&mut self, words: &str, tools: Vec<&'static ToolSpec>, want: Want) -> Result<Seen, SetupError> {
        let Some(wire) = self.wire()? else {
            let answer = Err(super::stream::failed(FailureKind::Setup, "a scenario speaks for it".to_owned(), false));
            return Ok(Seen { answer, piece_count: 0, refused: BTreeMap::new() });
        };
        let request = ModelRequest {
            session: SessionId::new("probe"),
            call: CallId(1),
            asker: Asker::Agent,
            answered_before: 0,
            messages: vec![Message::System { text: "You are being tested. Do exactly as told.".into() }, Message::user(words)],
            tools: tools.into_iter().map(OfferedTool::from).collect(),
            output_tags: vec![],
        };
        let piece_count = Mutex::new(0);
        let count = |delta: Delta| match delta {
            Delta::Text(_) | Delta::Reasoning(_) => *lock(&piece_count) += 1,
            Delta::Arguments { .. } => {}
        };
        let answer = wire.ask_for(&request, &want, &count).await;
        let refused = wire.refused();
        self.refused.extend(refused.clone());
        if answer.as_ref().is_ok_and(|reply| !reply.reasoning.is_empty()) {
            self.found(Ability::Reasoning, Verdict::Yes, "it came beside the text");
        }
        let piece_count = *lock(&piece_count);
        Ok(Seen { answer, piece_count, refused })
    }

    fn wire(&self) -> Result<Option<Wire>, SetupError> {
        self.profile.wire(self.key.clone())
    }

    fn found(&mut self, ability: Ability, verdict: Verdict, words: impl Into<String>) {
        self.findings.insert(ability, (verdict, words.into()));
    }

    /// Writes down whether it held, with what was seen, or the words of a refusal.
    fn judge(&mut self, ability: Ability, holds: bool, seen: &Seen, parameter: &str) {
        let refusal = seen.refusal(parameter);
        let is_passing = seen.answer.as_ref().err().is_some_and(|error| error.may_retry);
        match (holds, refusal) {
            (_, Some(words)) if is_passing => self.found(ability, Verdict::Unclear, words),
            (_, Some(words)) => self.found(ability, Verdict::No, words),
            (true, None) => self.found(ability, Verdict::Yes, seen.said()),
            (false, None) => self.found(ability, Verdict::No, seen.said()),
        }
    }

    /// Says whether there is anything to ask further.
    async fn chat(&mut self) -> Result<bool, SetupError> {
        let seen = self.ask("Answer with the one word: lighthouse", vec![], Want::Whole).await?;
        let answers = seen.answer.as_ref().is_ok_and(|reply| !reply.text.is_empty() || !reply.reasoning.is_empty());
        self.judge(Ability::Chat, answers, &seen, "");
        Ok(seen.answer.is_ok())
    }

    async fn streaming(&mut self) -> Result<(), SetupError> {
        let seen = self.ask("Count from one to ten, in words.", vec![], Want::Reply).await?;
        self.judge(Ability::Streaming, seen.piece_count > 1, &seen, "stream");
        if let Ok(reply) = &seen.answer {
            let usage = reply.usage;
            let verdict = if usage.input_tokens > 0 { Verdict::Yes } else { Verdict::No };
            self.found(Ability::Usage, verdict, format!("{} in, {} out", usage.input_tokens, usage.output_tokens));
        }
        Ok(())
    }

    async fn tools(&mut self) -> Result<(), SetupError> {
        let calls_of = |seen: &Seen| {
            let calls = seen.answer.as_ref().map(|reply| reply.calls.clone()).unwrap_or_default();
            let is_right = |arguments: &str| reply::arguments(arguments, false).is_ok_and(|read| read.value.contains_key("word"));
            calls.iter().filter(|call| call.name == NOTE.name && is_right(&call.arguments)).count()
        };
        let seen = self.ask("Call the tool `note` with the word: lamp", vec![&NOTE], Want::Reply).await?;
        self.judge(Ability::NativeTools, calls_of(&seen) > 0, &seen, "tools");
        if self.verdict(Ability::NativeTools) != Verdict::Yes {
            return Ok(());
        }
        let seen = self.ask("Say hello.", vec![&NOTE], Want::Tool(NOTE.name)).await?;
        self.judge(Ability::ForcedTool, calls_of(&seen) > 0, &seen, "tool_choice");
        let words = "Call the tool `note` twice in this one reply: with the word lamp, and with the word sea.";
        let seen = self.ask(words, vec![&NOTE], Want::Reply).await?;
        self.judge(Ability::ParallelCalls, calls_of(&seen) > 1, &seen, "tools");
        Ok(())
    }

    async fn json(&mut self) -> Result<(), SetupError> {
        let is_json = |seen: &Seen, holds: &dyn Fn(&Value) -> bool| {
            let text = seen.answer.as_ref().map(|reply| reply.text.clone()).unwrap_or_default();
            serde_json::from_str::<Value>(text.trim()).is_ok_and(|value| holds(&value))
        };
        // Not to be guessed: only one who holds to the schema writes these words.
        let schema = json!({"type": "object", "properties": {"kf7": {"type": "string", "enum": ["q9", "x4"]}}, "required": ["kf7"], "additionalProperties": false});
        let seen = self.ask("Write something as JSON.", vec![], Want::Schema(schema)).await?;
        let holds = is_json(&seen, &|value| matches!(value["kf7"].as_str(), Some("q9" | "x4")));
        self.judge(Ability::JsonSchema, holds, &seen, "response_format");
        if self.profile.kind == Kind::Anthropic {
            self.found(Ability::JsonObject, Verdict::Unclear, "this wire has no such mode");
            return Ok(());
        }
        let seen = self.ask("Write a JSON object with the field `word`.", vec![], Want::JsonObject).await?;
        self.judge(Ability::JsonObject, is_json(&seen, &Value::is_object), &seen, "response_format");
        Ok(())
    }

    async fn cache(&mut self) -> Result<(), SetupError> {
        let lines = (1..=LONG_PROMPT_LINES).map(|line| format!("{line}. The lamp turns, the sea is dark.\n"));
        let words: String = lines.chain(["Answer with the one word: lamp".to_owned()]).collect();
        let first = self.ask(&words, vec![], Want::Reply).await?;
        let second = self.ask(&words, vec![], Want::Reply).await?;
        match (&first.answer, &second.answer) {
            (Ok(_), Ok(reply)) => {
                let usage = reply.usage;
                let verdict = if usage.cached_tokens > 0 { Verdict::Yes } else { Verdict::No };
                let words = format!("{} of {} the second time", usage.cached_tokens, usage.input_tokens);
                self.found(Ability::CachedTokens, verdict, words);
            }
            (Err(error), _) | (_, Err(error)) => {
                self.found(Ability::CachedTokens, Verdict::Unclear, error.failure.message.clone());
            }
        }
        Ok(())
    }

    async fn context(&mut self) -> Result<(), SetupError> {
        let Some(wire) = self.wire()? else { return Ok(()) };
        match context_tokens(&wire, &self.profile.model).await {
            Some((tokens, place)) => {
                self.context_tokens = Some(tokens);
                self.found(Ability::ContextSize, Verdict::Yes, format!("{tokens} tokens, says {place}"));
            }
            None => self.found(Ability::ContextSize, Verdict::No, "the server does not tell; the profile's number stands"),
        }
        Ok(())
    }

    fn verdict(&self, ability: Ability) -> Verdict {
        self.findings.get(&ability).map_or(Verdict::Unclear, |(verdict, _)| *verdict)
    }

    fn report(mut self) -> ProbeReport {
        let tool_mode = match (self.verdict(Ability::NativeTools), self.verdict(Ability::JsonSchema)) {
            (Verdict::Yes, _) => ToolMode::Native,
            // Nothing is known: the session finds out.
            (Verdict::Unclear, Verdict::Unclear) => ToolMode::Native,
            (Verdict::No | Verdict::Unclear, Verdict::Yes) => ToolMode::JsonSchema,
            (Verdict::No | Verdict::Unclear, Verdict::No | Verdict::Unclear) => ToolMode::Text,
        };
        let has_talked = self.verdict(Ability::Chat) == Verdict::Yes;
        let finding = |ability| {
            let (verdict, words) = self.findings.remove(&ability).unwrap_or_else(|| match ability {
                Ability::Reasoning if has_talked => (Verdict::No, "none was shown".to_owned()),
                _ => (Verdict::Unclear, "not asked".to_owned()),
            });
            Finding { ability, verdict, words }
        };
        let findings = [
            Ability::Chat,
            Ability::Streaming,
            Ability::NativeTools,
            Ability::ForcedTool,
            Ability::ParallelCalls,
            Ability::JsonSchema,
            Ability::JsonObject,
            Ability::Reasoning,
            Ability::Usage,
            Ability::CachedTokens,
            Ability::ContextSize,
        ]
        .map(finding)
        .into();
        // Of one mode of many, not of the server.
        self.refused.remove("response_format");
        ProbeReport { findings, refused: self.refused, tool_mode, context_tokens: self.context_tokens }
    }
}

/// Asks the places where servers tell the size of a context; servers of one kind do not know the others' places.
async fn context_tokens(wire: &Wire, model: &str) -> Option<(u32, String)> {
    let (server, base_url) = wire.server();
    match wire {
        Wire::Anthropic(_) => {
            let document = server.document(&base_url.route(&format!("models/{model}")), None).await.ok()?;
            Some((number(&document, &["/max_input_tokens"])?, "its list of models".to_owned()))
        }
        Wire::Gemini(_) => {
            let model = model.strip_prefix("models/").unwrap_or(model);
            let document = server.document(&base_url.route(&format!("models/{model}")), None).await.ok()?;
            Some((number(&document, &["/inputTokenLimit"])?, "its list of models".to_owned()))
        }
        Wire::OpenAi(_) => {
            // What runs counts before what the model could: a server gives it less than that.
            if let Ok(props) = server.document(&base_url.beside("/props"), None).await
                && let Some(tokens) = number(&props, &["/default_generation_settings/n_ctx", "/n_ctx"])
            {
                return Some((tokens, "its /props".to_owned()));
            }
            for (url, place) in
                [(base_url.beside("/api/v0/models"), "its /api/v0/models"), (base_url.route("models"), "its list of models")]
            {
                if let Ok(list) = server.document(&url, None).await
                    && let Some(tokens) = entry(&list, model).and_then(|entry| number(entry, &CONTEXT_FIELDS))
                {
                    return Some((tokens, place.to_owned()));
                }
            }
            if let Ok(shown) = server.document(&base_url.beside("/api/show"), Some(&json!({"model": model}))).await {
                let fields = shown.get("model_info").and_then(Value::as_object)?;
                let (_, tokens) = fields.iter().find(|(name, _)| name.ends_with(".context_length"))?;
                return Some((u32::try_from(tokens.as_u64()?).ok()?, "its /api/show".to_owned()));
            }
            let config = server.document(&base_url.beside("/api/v1/config/max_context_length"), None).await.ok()?;
            Some((number(&config, &["/value"])?, "its /api/v1/config".to_owned()))
        }
    }
}

/// The same under many names; what is loaded before what could be.
const CONTEXT_FIELDS: [&str; 8] = [
    "/loaded_context_length",
    "/max_model_len",
    "/meta/n_ctx",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/meta/n_ctx_train",
    "/top_provider/context_length",
];

fn entry<'a>(list: &'a Value, model: &str) -> Option<&'a Value> {
    let entries = list.get("data").or(list.get("models"))?.as_array()?;
    let only = entries.first().filter(|_| entries.len() == 1);
    entries.iter().find(|entry| entry["id"] == *model).or(only)
}

fn number(document: &Value, places: &[&str]) -> Option<u32> {
    let found = places.iter().find_map(|place| document.pointer(place).and_then(Value::as_u64).filter(|number| *number > 0));
    u32::try_from(found?).ok()
}
