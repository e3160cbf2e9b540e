//! What a model does when it is asked: calls in shorthand or word for word, text, a reply cut off, a failure.

use quire_core::message::{Failure, FailureKind, Finish, Reply, ToolCall, Usage};
use serde_json::{Map, Value, json};

use super::text::{Piece, Problem, Token, common_indent, joined};
use super::{Part, Statement, no_rows};
use crate::ModelLine;

/// Who speaks: each has tools of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Agent,
    Worker,
    Task,
}

impl Speaker {
    /// Says what a reply may begin with.
    fn allowed(self) -> &'static str {
        match self {
            Speaker::Agent => {
                "the agent has run_worker, read_blackboard, list_workers, list_artifacts, ask_user, review_blackboard, \
                 declare_instance_ready, finish, text, call, cut and fails; `call NAME {…}` calls anything else"
            }
            Speaker::Task => "a task has text, call, cut and fails; `call NAME {…}` calls any tool",
            Speaker::Worker => "a worker has submit, ask_user, text, call, cut and fails; `call NAME {…}` calls anything else",
        }
    }
}

pub(super) fn line(statement: &Statement<'_>, speaker: Speaker) -> Result<ModelLine, Problem> {
    let head = statement.parts.first().map_or(statement.keyword, |part| part.head);
    reply(head, &statement.parts, speaker)
}

/// Reads a reply; `head` is the first part's, without what belongs to the keyword.
pub(super) fn reply(head: Piece<'_>, parts: &[Part<'_>], speaker: Speaker) -> Result<ModelLine, Problem> {
    let [first, more @ ..] = parts else { unreachable!("a statement has a first part") };
    let (name, rest) = head.name();
    let mut reply = Reply { text: "".into(), reasoning: "".into(), calls: vec![], finish: Finish::Stop, usage: Usage::default() };
    match name.text {
        "text" => reply.text = text(name, rest, first, "write what the model says")?.into(),
        "cut" => {
            reply.finish = Finish::Length;
            match rest.trim().name() {
                (word, arguments) if word.text == "call" => reply.calls.push(call(arguments, first)?),
                _ => reply.text = text(name, rest, first, "write what came before the end, or `cut call NAME {…`")?.into(),
            }
        }
        "fails" => {
            return match more.first() {
                None => failure(name, rest, first).map(ModelLine::Failure),
                Some(part) => {
                    Err(part.head.problem("and", "`and` adds a call, and a call that failed has none", "drop the line"))
                }
            };
        }
        _ => reply.calls.push(tool(head, first, speaker)?),
    }
    for part in more {
        let call = match part.head.name().0.text {
            word @ ("text" | "cut" | "fails") => {
                let help = format!("begin the reply with `{word}`, and add calls to it by `and`");
                return Err(part.head.problem("and", format!("`and` adds a call, and `{word}` is none"), help));
            }
            _ => tool(part.head, part, speaker)?,
        };
        reply.calls.push(call);
    }
    for (index, call) in reply.calls.iter_mut().enumerate() {
        call.id = format!("call-{}", index + 1);
    }
    if !reply.calls.is_empty() && reply.finish == Finish::Stop {
        reply.finish = Finish::ToolCalls;
    }
    Ok(ModelLine::Reply(reply))
}

fn text(name: Piece<'_>, rest: Piece<'_>, part: &Part<'_>, help: &str) -> Result<String, Problem> {
    let (head, text) = rest.split_text();
    match text.map(|text| joined(text, &part.rows)) {
        Some(text) if head.is_empty() && !text.is_empty() => Ok(text),
        _ => Err(name.problem("text", format!("`{}` needs a text after a colon", name.text), help)),
    }
}

fn failure(name: Piece<'_>, rest: Piece<'_>, part: &Part<'_>) -> Result<Failure, Problem> {
    const HELP: &str = "write `fails KIND: the provider's words`; KIND is network, unavailable, rejected, cut, refused, no_room, setup or \
                        unusable";
    let (head, text) = rest.split_text();
    let kind = match head.text {
        "network" => FailureKind::Network,
        "unavailable" => FailureKind::Unavailable,
        "rejected" => FailureKind::Rejected,
        "cut" => FailureKind::Cut,
        "refused" => FailureKind::Refused,
        "no_room" => FailureKind::NoRoom,
        "setup" => FailureKind::Setup,
        "unusable" => FailureKind::Unusable,
        "" => return Err(name.problem("failure", "the kind of failure is missing", HELP)),
        other => return Err(head.problem("failure", format!("there is no kind of failure `{other}`"), HELP)),
    };
    match text.map(|text| joined(text, &part.rows)) {
        Some(message) if !message.is_empty() => Ok(Failure { kind, message }),
        _ => Err(name.problem("failure", "the provider's words are missing", HELP)),
    }
}

/// Reads `NAME {arguments}`, whatever these are.
fn call(rest: Piece<'_>, part: &Part<'_>) -> Result<ToolCall, Problem> {
    let rest = rest.trim();
    let (name, arguments) = rest.split(rest.text.find(char::is_whitespace).unwrap_or(rest.text.len()));
    if name.is_empty() {
        let help = "write `call NAME {…}`; what follows the name is sent as it stands";
        return Err(part.head.problem("call", "the name of what is called is missing", help));
    }
    let arguments = joined(arguments.trim(), &part.rows);
    Ok(ToolCall { id: String::new(), name: name.text.to_owned(), arguments: arguments.into() })
}

fn tool(head: Piece<'_>, part: &Part<'_>, speaker: Speaker) -> Result<ToolCall, Problem> {
    let (name, rest) = head.name();
    if name.text == "call" {
        return call(rest, part);
    }
    let (head, text) = rest.split_text();
    let shorthand = Shorthand { name, head, text, part };
    let arguments = match (speaker, name.text) {
        (Speaker::Agent, "run_worker") => shorthand.run_worker(),
        (Speaker::Agent, "read_blackboard") => shorthand.read_blackboard(),
        (Speaker::Agent, "list_workers" | "list_artifacts") => shorthand.nothing(),
        (Speaker::Agent, "ask_user") => shorthand.agent_ask_user(),
        (Speaker::Agent, "review_blackboard") => shorthand.review_blackboard(),
        (Speaker::Agent, "declare_instance_ready") => shorthand.declare_instance_ready(),
        (Speaker::Agent, "finish") => shorthand.finish(),
        (Speaker::Worker, "submit") => shorthand.submit(),
        (Speaker::Worker, "ask_user") => shorthand.worker_ask_user(),
        _ => {
            let word = head_word(name, rest);
            let message = match word.is_empty() {
                true => "nothing is said and nothing is called".to_owned(),
                false => format!("`{}` is no word for this", word.text),
            };
            let place = if word.is_empty() { part.head } else { word };
            return Err(place.problem("reply", message, speaker.allowed()));
        }
    }?;
    Ok(ToolCall { id: String::new(), name: name.text.to_owned(), arguments: arguments.to_string().into() })
}

/// Returns the whole first word, of which `name` is the beginning.
fn head_word<'a>(name: Piece<'a>, rest: Piece<'a>) -> Piece<'a> {
    let start = name.at;
    let more = rest.text.split(|char: char| char.is_whitespace() || char == ':').next().unwrap_or_default();
    match name.is_empty() {
        true => Piece { text: more, at: start },
        false => name,
    }
}

/// A call in its short form: `name head: text`, with items below.
struct Shorthand<'a> {
    name: Piece<'a>,
    head: Piece<'a>,
    text: Option<Piece<'a>>,
    part: &'a Part<'a>,
}

/// A row that begins an item of a call, and what goes on below it.
struct Item<'a> {
    kind: ItemKind,
    first: Piece<'a>,
    rows: &'a [Piece<'a>],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Output,
    Question,
    Summary,
}

impl<'a> Shorthand<'a> {
    fn run_worker(&self) -> Result<Value, Problem> {
        const HELP: &str = "write `run_worker draft role=A approval: why`, with what is wanted of role, approval and reason";
        let mut arguments = Map::new();
        let mut needs_approval = false;
        let mut role = None;
        for token in self.head.tokens()? {
            match token {
                Token::Word(word) if arguments.is_empty() => drop(arguments.insert("workerId".to_owned(), json!(word.text))),
                Token::Word(word) if word.text == "approval" => needs_approval = true,
                Token::Setting { key, value } if key.text == "role" => role = Some(value),
                Token::Word(_) | Token::Setting { .. } => return Err(self.wrong(token.piece(), HELP)),
            }
        }
        let Some(worker) = arguments.get("workerId").and_then(Value::as_str) else { return Err(self.wrong(self.name, HELP)) };
        let reason = self.text_or(&format!("{worker} comes next"))?;
        arguments.insert("reason".to_owned(), json!(reason));
        arguments.insert("requiresApproval".to_owned(), json!(needs_approval));
        if let Some(role) = role {
            arguments.insert("roleId".to_owned(), json!(role));
        }
        Ok(Value::Object(arguments))
    }

    fn read_blackboard(&self) -> Result<Value, Problem> {
        self.no_text()?;
        let patterns: Vec<&str> = self.head.text.split_whitespace().collect();
        match patterns.is_empty() {
            true => {
                Err(self.wrong(self.name, "write `read_blackboard` with tags or patterns: `read_blackboard outline.* 用户.*`"))
            }
            false => Ok(json!({ "tags": patterns })),
        }
    }

    fn nothing(&self) -> Result<Value, Problem> {
        self.no_text()?;
        match self.head.is_empty() {
            true => Ok(json!({})),
            false => Err(self.wrong(self.head, &format!("`{}` stands alone", self.name.text))),
        }
    }

    fn agent_ask_user(&self) -> Result<Value, Problem> {
        let (rows, items) = self.items();
        let assessment = self.text.map(|text| joined(text, rows)).unwrap_or_default();
        if !self.head.is_empty() || assessment.is_empty() {
            let help = "write `ask_user: what there is to say`, and questions below as `? prompt [A: x | B: y] (required)`";
            return Err(self.wrong(self.name, help));
        }
        let mut arguments = json!({ "assessment": assessment });
        if let Some(questions) = self.questions(&items)? {
            arguments["questions"] = questions;
        }
        Ok(arguments)
    }

    fn worker_ask_user(&self) -> Result<Value, Problem> {
        const HELP: &str = "write `ask_user`, and questions below as `? prompt [A: x | B: y] (required)`";
        let (rows, items) = self.items();
        let is_bare = self.head.is_empty() && self.text.is_none() && rows.iter().all(|row| row.is_empty());
        match self.questions(&items)? {
            Some(questions) if is_bare => Ok(json!({ "questions": questions })),
            _ => Err(self.wrong(self.name, HELP)),
        }
    }

    fn review_blackboard(&self) -> Result<Value, Problem> {
        match self.text_or("")? {
            summary if self.head.is_empty() && !summary.is_empty() => Ok(json!({ "summary": summary })),
            _ => Err(self.wrong(self.name, "write `review_blackboard: the summary`")),
        }
    }

    fn declare_instance_ready(&self) -> Result<Value, Problem> {
        let reason = self.text_or("all settings stand")?;
        let mut skipped = Vec::new();
        for token in self.head.tokens()? {
            match token {
                Token::Setting { key, value } if key.text == "skip" => {
                    skipped.push(json!({ "skillId": value, "reason": reason }))
                }
                Token::Word(_) | Token::Setting { .. } => {
                    return Err(self.wrong(token.piece(), "write `declare_instance_ready skip=persona skip=world: why`"));
                }
            }
        }
        let mut arguments = json!({ "reason": reason });
        if !skipped.is_empty() {
            arguments["skipped"] = Value::Array(skipped);
        }
        Ok(arguments)
    }

    fn finish(&self) -> Result<Value, Problem> {
        match self.head.is_empty() {
            true => Ok(json!({ "reason": self.text_or("the work is done")? })),
            false => Err(self.wrong(self.head, "write `finish`, or `finish: why`")),
        }
    }

    fn submit(&self) -> Result<Value, Problem> {
        const HELP: &str = "write `submit tag: text`, or below `submit` a line `+ tag: text` for each output";
        let (rows, items) = self.items();
        let mut outputs = Map::new();
        match (self.head.is_empty(), self.text) {
            (false, Some(text)) => drop(outputs.insert(self.head.text.to_owned(), json!(joined(text, rows)))),
            (true, None) if rows.iter().all(|row| row.is_empty()) => {}
            _ => return Err(self.wrong(self.name, HELP)),
        }
        let mut summary = None;
        for item in &items {
            match item.kind {
                ItemKind::Output => {
                    let (tag, text) = item.first.split_text();
                    let Some(text) = text.filter(|_| !tag.is_empty()) else { return Err(self.wrong(item.first, HELP)) };
                    if outputs.insert(tag.text.to_owned(), json!(joined(text, item.rows))).is_some() {
                        return Err(tag.problem("submit", format!("`{}` is handed in twice", tag.text), "keep one of them"));
                    }
                }
                ItemKind::Summary => summary = Some(joined(item.first, item.rows)),
                ItemKind::Question => {}
            }
        }
        let mut arguments = json!({ "outputs": outputs });
        if let Some(summary) = summary {
            arguments["summary"] = json!(summary);
        }
        if let Some(questions) = self.questions(&items)? {
            arguments["questions"] = questions;
        }
        Ok(arguments)
    }

    /// Splits the rows below into text and items. Only what stands leftmost begins an item; deeper rows go on with it.
    fn items(&self) -> (&'a [Piece<'a>], Vec<Item<'a>>) {
        let indent = common_indent(&self.part.rows);
        let begins = |row: &Piece<'a>| {
            let content = row.trim();
            let marks = [(ItemKind::Output, "+ "), (ItemKind::Question, "? "), (ItemKind::Summary, "summary:")];
            let mark = marks.into_iter().find_map(|(kind, mark)| content.after(mark).map(|first| (kind, first.trim())));
            mark.filter(|_| row.indent() == indent)
        };
        let starts: Vec<usize> =
            self.part.rows.iter().enumerate().filter(|(_, row)| begins(row).is_some()).map(|(index, _)| index).collect();
        let ends = starts.iter().skip(1).copied().chain([self.part.rows.len()]);
        let items = (starts.iter().copied().zip(ends))
            .filter_map(|(start, end)| {
                let (kind, first) = begins(&self.part.rows[start])?;
                Some(Item { kind, first, rows: &self.part.rows[start + 1..end] })
            })
            .collect();
        (&self.part.rows[..starts.first().copied().unwrap_or(self.part.rows.len())], items)
    }

    fn questions(&self, items: &[Item<'_>]) -> Result<Option<Value>, Problem> {
        let mut questions = Vec::new();
        for item in items {
            match (item.kind, self.name.text) {
                (ItemKind::Question, _) => questions.push(question(item, questions.len() + 1)?),
                (ItemKind::Output | ItemKind::Summary, "submit") => {}
                (ItemKind::Output | ItemKind::Summary, _) => {
                    return Err(self.wrong(item.first, "only `submit` has outputs and a summary; questions begin with `? `"));
                }
            }
        }
        Ok((!questions.is_empty()).then_some(Value::Array(questions)))
    }

    fn text_or(&self, default: &str) -> Result<String, Problem> {
        match self.text.map(|text| joined(text, &self.part.rows)) {
            Some(text) if text.is_empty() => {
                Err(self.name.problem("text", format!("`{}:` has no text", self.name.text), "write it, or drop the colon"))
            }
            Some(text) => Ok(text),
            None => no_rows(self.part, self.name.text).map(|()| default.to_owned()),
        }
    }

    fn no_text(&self) -> Result<(), Problem> {
        match self.text {
            Some(_) => Err(self.wrong(self.name, &format!("`{}` takes no text", self.name.text))),
            None => no_rows(self.part, self.name.text),
        }
    }

    fn wrong(&self, place: Piece<'_>, help: &str) -> Problem {
        place.problem("call", format!("this is not how `{}` is written", self.name.text), help)
    }
}

/// Reads `id: prompt [A: x | B: y] (required)`, of which only the prompt must be there.
fn question(item: &Item<'_>, number: usize) -> Result<Value, Problem> {
    let whole = joined(item.first, item.rows).split_whitespace().collect::<Vec<_>>().join(" ");
    let (mut rest, mut is_required, mut allows_other) = (whole.as_str(), false, true);
    loop {
        if let Some(before) = rest.strip_suffix("(required)") {
            (rest, is_required) = (before.trim_end(), true);
        } else if let Some(before) = rest.strip_suffix("(options only)") {
            (rest, allows_other) = (before.trim_end(), false);
        } else {
            break;
        }
    }
    let options = match rest.strip_suffix(']').and_then(|before| before.rsplit_once('[')) {
        Some((before, options)) => {
            rest = before.trim_end();
            options.split('|').enumerate().map(|(index, option)| self::option(option.trim(), index)).collect()
        }
        None => Vec::new(),
    };
    let (id, prompt) = match rest.split_once(": ").or_else(|| rest.split_once('：')) {
        Some((id, prompt)) if !id.contains(' ') => (id.to_owned(), prompt.trim()),
        _ => (format!("q{number}"), rest),
    };
    if prompt.is_empty() {
        let help = "write `? prompt`, `? id: prompt`, options as `[A: x | B: y]`, then `(required)` or `(options only)`";
        return Err(item.first.problem("question", "the question asks nothing", help));
    }
    let mut question = json!({ "id": id, "prompt": prompt });
    if !options.is_empty() {
        question["options"] = Value::Array(options);
    }
    if !allows_other {
        question["allowOther"] = json!(false);
    }
    if is_required {
        question["required"] = json!(true);
    }
    Ok(question)
}

/// Reads `A: label`, or a label whose letter is its place.
fn option(text: &str, index: usize) -> Value {
    let letter = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    match text.split_once(':') {
        Some((id, label)) if letter(id) => json!({ "id": id, "label": label.trim() }),
        _ => {
            let id = char::from_u32('A' as u32 + index as u32).unwrap_or('Z');
            json!({ "id": id.to_string(), "label": text })
        }
    }
}
