//! What a user does: an action where the line begins with an action's name in its form, else words.

use quire_core::event::{Action, Budget, Target};
use quire_core::ids::{ItemNumber, TaskId};
use quire_core::tag::{Pattern, Tag};
use serde_json::Value;

use super::text::{Piece, Problem, Token, joined};
use super::{Part, Statement, no_rows, number, set_budget};
use crate::UserLine;

/// Names of actions that are written otherwise here; taken as words they would hide a mistake.
const OTHERWISE: [(&str, &str); 3] = [("confirm_intake", "confirm"), ("submit_input", "say: …"), ("edit_item", "edit tag: …")];

pub(super) fn line(statement: &Statement<'_>) -> Result<UserLine, Problem> {
    let part = match statement.parts.as_slice() {
        [part] => part,
        [_, second, ..] => {
            let message = "`and` adds a call of a tool, and a user calls none";
            return Err(second.head.problem("and", message, "write another `user` statement"));
        }
        [] => unreachable!("a statement has a first part"),
    };
    let (name, rest) = part.head.name();
    let stands_alone = rest.text.chars().next().is_none_or(|char| char.is_whitespace() || [':', '：'].contains(&char));
    if !stands_alone {
        return words(part.head, part, statement);
    }
    let (head, text) = rest.split_text();
    let form = Form { name, head, text, part };
    Ok(UserLine::Act(match name.text {
        "confirm" => form.alone(Action::ConfirmIntake)?,
        "retry" => form.alone(Action::Retry)?,
        "stop" => form.alone(Action::Stop)?,
        "finish" => form.alone(Action::Finish)?,
        "reveal" => form.alone(Action::Reveal)?,
        "approve" => form.without_text(|decision| Action::Approve { decision })?,
        "accept" => form.without_text(|artifact| Action::Accept { artifact })?,
        "discard" => form.without_text(|artifact| Action::Discard { artifact })?,
        "skip" => form.without_text(|card| Action::Skip { card })?,
        "reject" => form.with_reason(|artifact, reason| Action::Reject { artifact, reason: reason.into() })?,
        "reject_step" => form.with_reason(|decision, reason| Action::RejectStep { decision, reason: reason.into() })?,
        "answer" => return form.answer(),
        "set" => form.set()?,
        "set_budget" => form.set_budget()?,
        "edit" => form.edit()?,
        "edit_cell" => form.edit_cell()?,
        "release_cell" => form.release_cell()?,
        "start_task" => form.start_task()?,
        "cancel_task" => form.cancel_task()?,
        "say" => return form.say(),
        other => match OTHERWISE.iter().find(|(name, _)| *name == other) {
            Some((_, form)) => {
                return Err(name.problem("action", format!("`{other}` is written otherwise"), format!("write `user {form}`")));
            }
            None => return words(part.head, part, statement),
        },
    }))
}

fn words(first: Piece<'_>, part: &Part<'_>, statement: &Statement<'_>) -> Result<UserLine, Problem> {
    let text = joined(first, &part.rows);
    if text.is_empty() {
        let help = "write words, or an action: accept, reject: …, answer q1=A …";
        return Err(statement.keyword.problem("words", "the user neither says nor does anything", help));
    }
    Ok(UserLine::Act(Action::SubmitInput { text: text.into(), values: Default::default() }))
}

/// An action in its form: `name head: text`, with the rows below.
struct Form<'a> {
    name: Piece<'a>,
    head: Piece<'a>,
    text: Option<Piece<'a>>,
    part: &'a Part<'a>,
}

impl Form<'_> {
    fn alone(&self, action: Action) -> Result<Action, Problem> {
        let form = format!("`{}` alone", self.name.text);
        self.no_text(&form)?;
        match self.head.is_empty() {
            true => Ok(action),
            false => Err(self.wrong(self.head, &form)),
        }
    }

    fn without_text(&self, action: impl Fn(Target) -> Action) -> Result<Action, Problem> {
        let name = self.name.text;
        let form = format!("`{name}`, or `{name} 2` with the number of what it answers");
        self.no_text(&form)?;
        self.target(&form).map(action)
    }

    fn with_reason(&self, action: impl Fn(Target, String) -> Action) -> Result<Action, Problem> {
        let name = self.name.text;
        let target = self.target(&format!("`{name}`, `{name}: why`, or `{name} 2: why` with the number of what it answers"))?;
        let reason = match self.text {
            Some(_) => self.whole_text("write the reason, or drop the colon")?,
            None => no_rows(self.part, self.name.text).map(|()| String::new())?,
        };
        Ok(action(target, reason))
    }

    fn answer(&self) -> Result<UserLine, Problem> {
        const FORM: &str = "`answer q1=B q2=\"free text\"`, or `answer 2 q1=B` with the card's number";
        self.no_text(FORM)?;
        let mut card = None;
        let mut answers = Vec::new();
        for token in self.head.tokens()? {
            match token {
                Token::Word(word) if is_number(word) && card.is_none() && answers.is_empty() => card = Some(word.text.to_owned()),
                Token::Word(word) => return Err(self.wrong(word, FORM)),
                Token::Setting { key, value } => answers.push((key.text.to_owned(), value)),
            }
        }
        match answers.is_empty() {
            true => Err(self.wrong(self.name, FORM)),
            false => Ok(UserLine::Answer { card, answers }),
        }
    }

    fn set(&self) -> Result<Action, Problem> {
        const FORM: &str = "`set genre=Horror length=\"very short\"`, with fields of the intake";
        self.no_text(FORM)?;
        let mut values = std::collections::BTreeMap::new();
        for token in self.head.tokens()? {
            match token {
                Token::Word(word) => return Err(self.wrong(word, FORM)),
                Token::Setting { key, value } => drop(values.insert(key.text.to_owned(), value)),
            }
        }
        match values.is_empty() {
            true => Err(self.wrong(self.name, FORM)),
            false => Ok(Action::SubmitInput { text: "".into(), values }),
        }
    }

    fn set_budget(&self) -> Result<Action, Problem> {
        const FORM: &str = "`set_budget rounds=10 tokens=5000 money_micros=1 time_ms=1`, with those that are wanted";
        self.no_text(FORM)?;
        let mut budget = Budget::default();
        for token in self.head.tokens()? {
            match token {
                Token::Word(word) => return Err(self.wrong(word, FORM)),
                Token::Setting { key, value } => {
                    set_budget(&mut budget, key, key.text, &value, "limits are rounds, tokens, money_micros and time_ms")?;
                }
            }
        }
        Ok(Action::SetBudget { budget })
    }

    fn edit(&self) -> Result<Action, Problem> {
        const FORM: &str =
            "`edit chapter.draft: The whole text.`, or `edit chapter.draft base=4: …` with the item it was made from";
        let (tag, base) = match self.head.tokens()?.as_slice() {
            [Token::Word(word)] => (tag(*word)?, None),
            [Token::Word(word), Token::Setting { key, value }] if key.text == "base" => {
                (tag(*word)?, Some(ItemNumber(number(*key, value)?)))
            }
            _ => return Err(self.wrong(self.name, FORM)),
        };
        let Some(text) = self.text else { return Err(self.wrong(self.name, FORM)) };
        Ok(Action::EditItem { tag, base, text: joined(text, &self.part.rows).into() })
    }

    fn edit_cell(&self) -> Result<Action, Problem> {
        const FORM: &str = "`edit_cell vars.table hp rev=1: 7`, with rev=0 for a new cell";
        let (tag, key, rev) = self.cell(FORM)?;
        if self.text.is_none() {
            return Err(self.wrong(self.name, FORM));
        }
        let text = self.whole_text("write the value: JSON, or words")?;
        let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Action::EditCell { tag, key, value, rev })
    }

    fn release_cell(&self) -> Result<Action, Problem> {
        const FORM: &str = "`release_cell vars.table hp rev=2`";
        self.no_text(FORM)?;
        let (tag, key, rev) = self.cell(FORM)?;
        Ok(Action::ReleaseCell { tag, key, rev })
    }

    fn cell(&self, form: &str) -> Result<(Tag, String, u64), Problem> {
        match self.head.tokens()?.as_slice() {
            [Token::Word(table), Token::Word(cell), Token::Setting { key, value }] if key.text == "rev" => {
                Ok((tag(*table)?, cell.text.to_owned(), number(*key, value)?))
            }
            _ => Err(self.wrong(self.name, form)),
        }
    }

    fn start_task(&self) -> Result<Action, Problem> {
        const FORM: &str = "`start_task: what to find out`, or `start_task title=\"Lamps\" grants=outline.*,notes: …`";
        let mut title = String::new();
        let mut grants = vec![];
        for token in self.head.tokens()? {
            match token {
                Token::Setting { key, value } if key.text == "title" => title = value,
                Token::Setting { key, value } if key.text == "grants" => {
                    for raw in value.split(',') {
                        let grant = Pattern::parse(raw);
                        grants.push(
                            grant.map_err(|error| {
                                key.problem("grants", error.to_string(), "write tags or patterns, with commas")
                            })?,
                        );
                    }
                }
                Token::Word(_) | Token::Setting { .. } => return Err(self.wrong(self.name, FORM)),
            }
        }
        let task = self.whole_text("write what is to be found out")?.into();
        Ok(Action::StartTask { task, title, grants })
    }

    fn cancel_task(&self) -> Result<Action, Problem> {
        const FORM: &str = "`cancel_task 2` with the task's number";
        self.no_text(FORM)?;
        match self.head.text.parse() {
            Ok(task) => Ok(Action::CancelTask { task: TaskId(task) }),
            Err(_) => Err(self.wrong(self.name, FORM)),
        }
    }

    fn say(&self) -> Result<UserLine, Problem> {
        match self.head.is_empty() && self.text.is_some() {
            true => {
                let text = self.whole_text("write what the user says")?;
                Ok(UserLine::Act(Action::SubmitInput { text: text.into(), values: Default::default() }))
            }
            false => Err(self.wrong(self.name, "`say: ` and the user's words")),
        }
    }

    fn target(&self, form: &str) -> Result<Target, Problem> {
        match self.head.is_empty() {
            true => Ok(None),
            false if is_number(self.head) => Ok(Some(self.head.text.to_owned())),
            false => Err(self.wrong(self.head, form)),
        }
    }

    fn no_text(&self, form: &str) -> Result<(), Problem> {
        match self.text {
            Some(text) if text.is_empty() => Err(self.wrong(self.name, form)),
            Some(text) => Err(self.wrong(text, form)),
            None => no_rows(self.part, self.name.text),
        }
    }

    fn whole_text(&self, help: &str) -> Result<String, Problem> {
        let first = self.text.unwrap_or(Piece { text: "", at: self.name.at });
        match joined(first, &self.part.rows) {
            text if text.is_empty() => Err(self.name.problem("text", format!("`{}:` has no text", self.name.text), help)),
            text => Ok(text),
        }
    }

    fn wrong(&self, place: Piece<'_>, form: &str) -> Problem {
        let name = self.name.text;
        let help = format!("write {form}; for these very words of the user write `say: {name} …`");
        place.problem("action", format!("this is not how the action `{name}` is written"), help)
    }
}

fn is_number(word: Piece<'_>) -> bool {
    !word.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit())
}

fn tag(word: Piece<'_>) -> Result<Tag, Problem> {
    Tag::parse(word.text).map_err(|error| word.problem("tag", error.to_string(), "write the whole tag, like `chapter.draft`"))
}
