//! Reads a file into statements, and each statement into a line.

use std::collections::BTreeMap;

use quire_core::deep_task::{HostTool, ToolEffect, ToolResult};
use quire_core::diagnostic::{Diagnostic, Severity, Span};
use quire_core::event::Budget;
use quire_core::ids::{SkillId, TaskId};
use quire_core::message::ToolCall;
use serde_json::Value;

use crate::{Line, LineKind, ModelLine, Options, Scenario, Secret};
use text::{Piece, Problem, Token, joined};

mod model;
mod text;
mod user;

/// What a line does, with the rows below it that belong to it.
#[derive(Debug)]
struct Part<'a> {
    /// The rest of its line.
    head: Piece<'a>,
    /// Rows with their indentation; blank ones are empty.
    rows: Vec<Piece<'a>>,
}

/// One statement.
#[derive(Debug)]
struct Statement<'a> {
    /// Its line as written.
    line: Piece<'a>,
    /// `user`, `agent`, …
    keyword: Piece<'a>,
    /// What the keyword says, then one more for each `and`.
    parts: Vec<Part<'a>>,
}

pub(super) fn scenario(file: &str, text: &str) -> Result<Scenario, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let mut scenario =
        Scenario { pack: None, options: Options::default(), secrets: Vec::new(), tools: Vec::new(), lines: Vec::new() };
    let mut runs = Runs::default();
    for statement in statements(text, &mut problems) {
        let kind = match statement.keyword.text {
            "pack" => pack(&statement, &mut scenario.pack).map(|()| None),
            "option" => option(&statement, &mut scenario.options).map(|()| None),
            "secret" => secret(&statement).map(|secret| {
                scenario.secrets.push(secret);
                None
            }),
            "user" => user::line(&statement).map(|line| Some(LineKind::User(line))),
            "agent" => model::line(&statement, model::Speaker::Agent).map(|line| Some(LineKind::Agent(line))),
            "worker" => worker(&statement, &runs).map(Some),
            "tools" => tools(&statement, &mut scenario.tools).map(|()| None),
            "task" => task(&statement).map(Some),
            "tool" => tool(&statement).map(Some),
            _ => Err(statement.keyword.problem(
                "keyword",
                format!("`{}` begins no statement", statement.keyword.text),
                "a statement begins with pack, option, secret, tools, user, agent, worker, task or tool; `and` adds a call; the text of a statement is \
                 indented by two or more",
            )),
        };
        match kind {
            Ok(None) => {}
            Ok(Some(kind)) => {
                runs.note(&kind);
                let number = Span::of(text, statement.line.at, statement.line.at).line;
                scenario.lines.push(Line { number, text: statement.line.text.to_owned(), kind });
            }
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() {
        return Ok(scenario);
    }
    problems.sort_by_key(|problem| problem.start);
    Err(problems.into_iter().map(|problem| diagnostic(file, text, problem)).collect())
}

fn diagnostic(file: &str, text: &str, problem: Problem) -> Diagnostic {
    let Problem { code, start, end, message, help } = problem;
    Diagnostic { severity: Severity::Error, code, file: file.to_owned(), span: Span::of(text, start, end), message, help }
}

fn statements<'a>(text: &'a str, problems: &mut Vec<Problem>) -> Vec<Statement<'a>> {
    let mut statements: Vec<Statement<'a>> = Vec::new();
    let mut column = None;
    for row in rows(text) {
        let content = row.trim();
        if content.is_empty() {
            if let Some(part) = statements.last_mut().and_then(|statement| statement.parts.last_mut()) {
                part.rows.push(content);
            }
            continue;
        }
        let (is_comment, indent) = (content.text.starts_with('#'), row.indent());
        if is_comment && column.is_none_or(|column| indent <= column) {
            continue;
        }
        let column = *column.get_or_insert(indent);
        let is_and = content.text.split_whitespace().next() == Some("and");
        let part = |head| Part { head, rows: Vec::new() };
        match (statements.last_mut(), indent.checked_sub(column)) {
            (Some(statement), Some(0 | 1)) if is_and => statement.parts.push(part(content.split("and".len()).1.trim())),
            (_, Some(0)) => {
                let (keyword, head) = content.split(content.text.find(char::is_whitespace).unwrap_or(content.text.len()));
                let (keyword, head) = match keyword.text.split_once('(') {
                    Some((name @ ("worker" | "task"), _)) => content.split(name.len()),
                    Some(_) | None => (keyword, head),
                };
                statements.push(Statement { line: content, keyword, parts: vec![part(head.trim())] });
            }
            (Some(Statement { parts, .. }), Some(2..)) => {
                parts.iter_mut().last().into_iter().for_each(|part| part.rows.push(row))
            }
            (_, None) => problems.push(content.problem(
                "indentation",
                "this line stands left of the first statement",
                "begin all statements in one column; indent the text of a statement by two or more",
            )),
            (Some(_), Some(_)) => problems.push(content.problem(
                "indentation",
                "this line is indented by one, so it is neither a statement nor text",
                "indent text by two or more; only `and` may stand one deeper than its statement",
            )),
            (None, Some(_)) => unreachable!("the first line sets the column"),
        }
    }
    for part in statements.iter_mut().flat_map(|statement| &mut statement.parts) {
        while part.rows.last().is_some_and(|row| row.is_empty()) {
            part.rows.pop();
        }
    }
    statements
}

/// Returns the file's lines with their places, without what white space ends them.
fn rows(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let row = Piece { text: line.trim_end(), at };
        at += line.len();
        match row.after("\u{feff}") {
            Some(rest) if row.at == 0 => rest,
            _ => row,
        }
    })
}

/// Who ran last: to know whose line an unnamed `worker` line is.
#[derive(Default)]
struct Runs {
    last: Option<SkillId>,
    roles: BTreeMap<SkillId, Option<String>>,
}

impl Runs {
    fn note(&mut self, kind: &LineKind) {
        let LineKind::Agent(ModelLine::Reply(reply)) = kind else { return };
        for ToolCall { name, arguments, .. } in &reply.calls {
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            let argument = |key: &str| arguments.get(key).and_then(Value::as_str);
            if let ("run_worker", Some(skill)) = (name.as_str(), argument("workerId")) {
                self.last = Some(SkillId::new(skill));
                self.roles.insert(SkillId::new(skill), argument("roleId").map(str::to_owned));
            }
        }
    }

    fn role(&self, skill: Option<&SkillId>) -> Option<String> {
        skill.and_then(|skill| self.roles.get(skill)).cloned().flatten()
    }
}

fn worker(statement: &Statement<'_>, runs: &Runs) -> Result<LineKind, Problem> {
    const HELP: &str = "write `worker(draft) …`, or `worker(act role=A) …` for a run in a role";
    let Some(part) = statement.parts.first() else { unreachable!("a statement has a first part") };
    let (skill, role, head) = match part.head.after("(") {
        // A parenthesis that begins the words of a worker is not met: these begin with a name.
        Some(named) => {
            let end = named.text.find(')').ok_or_else(|| part.head.problem("worker", "the parenthesis is not closed", HELP))?;
            let (named, rest) = named.split(end);
            let tokens = named.tokens()?;
            let (skill, role) = match tokens.as_slice() {
                [Token::Word(skill)] => (SkillId::new(skill.text), None),
                [Token::Word(skill), Token::Setting { key, value }] if key.text == "role" => {
                    (SkillId::new(skill.text), Some(value.clone()))
                }
                _ => return Err(named.problem("worker", "between the parentheses stands no worker's id", HELP)),
            };
            let role = role.or_else(|| runs.role(Some(&skill)));
            (Some(skill), role, rest.split(1).1.trim())
        }
        None => (runs.last.clone(), runs.role(runs.last.as_ref()), part.head),
    };
    let reply = model::reply(head, &statement.parts, model::Speaker::Worker)?;
    Ok(LineKind::Worker { skill, role, reply })
}

fn tools(statement: &Statement<'_>, tools: &mut Vec<HostTool>) -> Result<(), Problem> {
    const HELP: &str = "write `tools search note=acts`: each name alone, or with reads, idempotent or acts";
    for token in only_head(statement)?.tokens()? {
        let (name, effect) = match token {
            Token::Word(name) => (name, ToolEffect::Reads),
            Token::Setting { key, value } => {
                let effect = match value.as_str() {
                    "reads" => ToolEffect::Reads,
                    "idempotent" => ToolEffect::Idempotent,
                    "acts" => ToolEffect::Acts,
                    other => return Err(key.problem("tools", format!("a tool does not `{other}`"), HELP)),
                };
                (key, effect)
            }
        };
        tools.push(HostTool {
            name: name.text.to_owned(),
            description: format!("The tool {}.", name.text).into(),
            parameters: r#"{"type":"object"}"#.into(),
            effect,
            server: "script".to_owned(),
            own_name: name.text.to_owned(),
        });
    }
    Ok(())
}

fn task(statement: &Statement<'_>) -> Result<LineKind, Problem> {
    const HELP: &str = "write `task …`, or `task(2) …` for task 2 alone";
    let Some(part) = statement.parts.first() else { unreachable!("a statement has a first part") };
    let (task, head) = match part.head.after("(") {
        Some(named) => {
            let end = named.text.find(')').ok_or_else(|| part.head.problem("task", "the parenthesis is not closed", HELP))?;
            let (number, rest) = named.split(end);
            let id = number.text.trim().parse().map_err(|_| number.problem("task", "a task has a number", HELP))?;
            (Some(TaskId(id)), rest.split(1).1.trim())
        }
        None => (None, part.head),
    };
    let reply = model::reply(head, &statement.parts, model::Speaker::Task)?;
    Ok(LineKind::Task { task, reply })
}

fn tool(statement: &Statement<'_>) -> Result<LineKind, Problem> {
    const HELP: &str = "write `tool search: what it gives back`, or `tool search fails: its words`";
    let [part] = statement.parts.as_slice() else {
        return Err(statement.line.problem("tool", "a tool gives back one result", HELP));
    };
    let (head, text) = part.head.split_text();
    let Some(text) = text.map(|text| joined(text, &part.rows)) else {
        return Err(part.head.problem("tool", "there is no result", HELP));
    };
    match head.text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [name] => Ok(LineKind::Tool { tool: (*name).to_owned(), result: ToolResult::fine(text) }),
        [name, "fails"] => Ok(LineKind::Tool { tool: (*name).to_owned(), result: ToolResult::error(text) }),
        _ => Err(head.problem("tool", "this is no tool's name", HELP)),
    }
}

fn pack(statement: &Statement<'_>, pack: &mut Option<String>) -> Result<(), Problem> {
    let head = only_head(statement)?;
    if head.is_empty() {
        return Err(statement.keyword.problem("pack", "the pack's name is missing", "write `pack short-story`"));
    }
    if pack.is_some() {
        return Err(statement.line.problem("pack", "the pack is named twice", "keep one `pack` statement"));
    }
    *pack = Some(head.text.to_owned());
    Ok(())
}

fn secret(statement: &Statement<'_>) -> Result<Secret, Problem> {
    const HELP: &str = "write `secret draft act(A): the words`, with those who may read them, or `nobody`";
    let [Part { head, rows }] = statement.parts.as_slice() else {
        return Err(statement.line.problem("secret", "`and` adds a call of a tool, and this is no reply of a model", HELP));
    };
    let (readers, Some(words)) = head.split_text() else {
        return Err(statement.line.problem("secret", "the words are missing", HELP));
    };
    let words = joined(words, rows);
    let readers: Vec<String> = readers.text.split_whitespace().map(str::to_owned).collect();
    if words.is_empty() || readers.is_empty() {
        return Err(statement.line.problem("secret", "a secret has words, and somebody who may read them", HELP));
    }
    Ok(Secret { words, readers: readers.into_iter().filter(|reader| reader != "nobody").collect() })
}

fn option(statement: &Statement<'_>, options: &mut Options) -> Result<(), Problem> {
    const HELP: &str = "options are title, burst_max, budget.rounds, budget.tokens, budget.money_micros and budget.time_ms, and the same of a task as task.max_rounds and so on, each as `name=value`";
    for token in only_head(statement)?.tokens()? {
        let Token::Setting { key, value } = token else {
            return Err(token.piece().problem("option", format!("`{}` has no value", token.piece().text), HELP));
        };
        match key.text {
            "title" => options.title = value,
            "burst_max" => options.burst_max = Some(number(key, &value)?),
            "task.max_rounds" => options.task_caps.max_rounds = number(key, &value)?,
            "task.max_tokens" => options.task_caps.max_tokens = Some(number(key, &value)?),
            "task.max_money_micros" => options.task_caps.max_money_micros = Some(number(key, &value)?),
            "task.max_time_ms" => options.task_caps.max_time_ms = Some(number(key, &value)?),
            other => match other.strip_prefix("budget.") {
                Some(name) => set_budget(&mut options.budget, key, name, &value, HELP)?,
                None => return Err(key.problem("option", format!("there is no option `{other}`"), HELP)),
            },
        }
    }
    Ok(())
}

/// Returns the rest of a line that has nothing below it.
fn only_head<'a>(statement: &Statement<'a>) -> Result<Piece<'a>, Problem> {
    match statement.parts.as_slice() {
        [part] => no_rows(part, statement.keyword.text).map(|()| part.head),
        [_, second, ..] => {
            Err(second.head.problem("and", "`and` adds a call of a tool, and this is no reply of a model", "drop the line"))
        }
        [] => unreachable!("a statement has a first part"),
    }
}

fn no_rows(part: &Part<'_>, name: &str) -> Result<(), Problem> {
    match part.rows.iter().find(|row| !row.is_empty()) {
        None => Ok(()),
        Some(row) => Err(row.trim().problem(
            "text",
            format!("`{name}` takes no text, and this line is indented like one"),
            "drop the line; a comment begins in the statements' column",
        )),
    }
}

fn set_budget(budget: &mut Budget, key: Piece<'_>, name: &str, value: &str, help: &str) -> Result<(), Problem> {
    let limit = match name {
        "rounds" => &mut budget.rounds,
        "tokens" => &mut budget.tokens,
        "money_micros" => &mut budget.money_micros,
        "time_ms" => &mut budget.time_ms,
        other => return Err(key.problem("option", format!("there is no budget of `{other}`"), help)),
    };
    *limit = Some(number(key, value)?);
    Ok(())
}

fn number<N: std::str::FromStr>(key: Piece<'_>, value: &str) -> Result<N, Problem> {
    value.parse().map_err(|_| {
        let message = format!("`{}` is `{value}`, which is no number it can have", key.text);
        key.problem("number", message, "write a whole number from 0")
    })
}
