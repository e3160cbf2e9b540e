//! `quire chat`: a session as a conversation, on a terminal or through a pipe.
//!
//! What is typed without a slash is the person's words; every other thing a user can do is a command (`command`). A
//! question card is answered page by page (`card`). Each action names what was on the screen when it was typed, so that
//! what changed meanwhile is refused and not decided by accident. Ctrl-C stops what runs, and leaves where nothing does;
//! the session stays where it is.
//!
//! The demo is the same conversation with a script that suggests the next line.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use quire_core::artifact::ArtifactState;
use quire_core::blackboard::ItemState;
use quire_core::event::Action;
use quire_core::ids::{ArtifactId, SessionId};
use quire_core::session::{Phase, Session, Verb, Waiting};
use quire_core::table::{CellSource, Table};
use quire_core::tag::Tag;
use quire_runtime::driver::Opened;
use quire_runtime::ports::{Answered, StoreError};
use quire_scenario::UserLine;
use quire_scenario::perform::resolve;
use tokio::sync::watch;

use self::card::{CardPlay, Step};
use self::command::{Slash, Typed};
use self::input::{Ask, Hush, Interrupts, Line, Lines};
use super::paint::{Paint, printable};
use super::progress::{How, Progress};
use super::{Desk, act, look, screen};
use crate::options::{
    Answer, Chat, Command, Context, Edit, EditCell, New, OnArtifact, OnCard, OnDecision, OnSession, Reject, ReleaseCell, Select,
    SetBudget, UpgradePack,
};
use crate::report::{self, Usage};
use crate::wire;
use crate::words::{self, Lang};

mod card;
mod command;
mod input;

/// Prints what is painted: what it holds of others' text is printable already.
macro_rules! put {
    ($($text:tt)*) => { crate::out::styled(&format!($($text)*)) };
}

/// Prints a painted line.
macro_rules! say {
    ($($text:tt)*) => { crate::out::styled(&format!("{}\n", format_args!($($text)*))) };
}

const PROMPT: &str = "▌ ";
/// Records that `/log` shows without `all`.
const LOG_RECORDS: usize = 20;

/// Talks with a session that is there, or with a new one.
pub async fn chat(desk: &Desk, chat: Chat) -> Result<ExitCode> {
    let named = SessionId::new(&chat.pack_or_session);
    match desk.store.summary(&named).await {
        Ok(_) => {
            if chat.title.is_some() || chat.model.is_some() || chat.burst.is_some() {
                return Err(Usage(desk.lang.chat_options_of_new(&named)).into());
            }
            talk(desk, named, VecDeque::new()).await
        }
        Err(StoreError::NoSession(_)) => {
            let Chat { pack_or_session, title, model, burst } = chat;
            let id = act::start(desk, New { pack: Some(pack_or_session), title, model, burst }).await?;
            act::warn_of_model(desk, &desk.fleet.look(&id).await?);
            talk(desk, id, VecDeque::new()).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Talks until the person leaves or the session has ended. `script`: lines to suggest, as written and as read.
pub async fn talk(desk: &Desk, id: SessionId, script: VecDeque<(String, UserLine)>) -> Result<ExitCode> {
    let lang = desk.lang;
    let interrupts = interrupts();
    let mut talk = Talk {
        desk,
        lang,
        paint: Paint::of_stdout(),
        lines: Lines::open(&desk.folder, lang),
        interrupts,
        opened: desk.fleet.look(&id).await?,
        id,
        script,
        card: None,
        told_artifacts: 0,
        draft: String::new(),
        kept: None,
    };
    say!("{}", talk.paint.dim(&lang.chat_opened(&talk.id)));
    talk.recall();
    if matches!(talk.opened.session.phase(), Phase::Running(_)) {
        talk.work().await?;
    }
    talk.tell();
    talk.converse().await
}

/// A conversation.
struct Talk<'a> {
    desk: &'a Desk,
    lang: Lang,
    paint: Paint,
    lines: Lines,
    interrupts: Interrupts,
    id: SessionId,
    /// The session as it was told last.
    opened: Opened,
    script: VecDeque<(String, UserLine)>,
    card: Option<AtCard>,
    told_artifacts: usize,
    /// What was typed and not heard: it is there again to be changed.
    draft: String,
    /// Characters that the last action left unfinished.
    kept: Option<usize>,
}

/// The open card, and whether what is typed goes to it.
struct AtCard {
    play: CardPlay,
    is_active: bool,
}

/// What follows from a line.
enum Next {
    /// The session is as it was.
    Stay,
    /// The session has moved.
    Moved,
    /// The person leaves.
    Leave,
}

impl Talk<'_> {
    async fn converse(&mut self) -> Result<ExitCode> {
        loop {
            match self.opened.session.phase() {
                Phase::Done => {
                    say!("{}", self.paint.dim(&self.lang.chat_ended(&self.id)));
                    return Ok(ExitCode::from(report::FINE));
                }
                Phase::Error { .. } => return Ok(ExitCode::from(report::FAILED)),
                Phase::Idle | Phase::Running(_) | Phase::WaitingUser(_) => {}
            }
            let line = match self.lines.next(self.ask(), &mut self.interrupts).await? {
                Line::Text(line) => line,
                Line::End => return Ok(self.left()),
            };
            self.draft.clear();
            let next = match self.take(&line).await {
                Ok(next) => next,
                Err(error) => {
                    self.draft.clone_from(&line);
                    say!("{}", printable(&report::words_of(self.lang, &error)));
                    Next::Stay
                }
            };
            match next {
                Next::Stay => {}
                Next::Moved => self.tell(),
                Next::Leave => return Ok(self.left()),
            }
        }
    }

    fn left(&self) -> ExitCode {
        say!("\n{}", self.paint.dim(&self.lang.chat_left(&self.id)));
        ExitCode::from(report::FINE)
    }

    fn ask(&self) -> Ask {
        let tags = self.opened.session.board().tags().map(ToString::to_string).collect();
        let (prompt, initial) = match self.card.as_ref().filter(|card| card.is_active) {
            Some(card) => card.play.prompt(),
            None => (PROMPT.to_owned(), String::new()),
        };
        let initial = if self.draft.is_empty() { initial } else { self.draft.clone() };
        Ask { prompt, initial, tags }
    }

    async fn take(&mut self, line: &str) -> Result<Next> {
        let typed = command::read(line);
        if let Typed::Slash(slash, rest) = typed {
            return self.command(slash, rest, line).await;
        }
        if let Typed::Unknown(given) = typed {
            say!("{}", self.lang.chat_no_such_command(printable(given)));
            self.draft = line.to_owned();
            return Ok(Next::Stay);
        }
        let is_untouched = self.card.as_ref().is_none_or(|card| card.play.is_untouched());
        if typed == Typed::Blank
            && is_untouched
            && let Some(user) = self.suggestion().map(|(_, user)| user.clone())
        {
            let action = scripted(&self.opened.session, user).map_err(|fault| anyhow!(fault))?;
            return self.act(action, "").await;
        }
        if let Some(card) = &mut self.card {
            card.is_active |= card.play.is_meant(line);
            if card.is_active {
                let words = if let Typed::Words(words) = typed { words } else { "" };
                return self.answer(words).await;
            }
        }
        match typed {
            Typed::Words(words) => {
                let action = said(&self.opened.session, words);
                self.act(action, line).await
            }
            Typed::Blank | Typed::Slash(..) | Typed::Unknown(_) => {
                say!("{}", self.lang.chat_nothing_typed());
                Ok(Next::Stay)
            }
        }
    }

    async fn answer(&mut self, words: &str) -> Result<Next> {
        let lang = self.lang;
        let Some(AtCard { play, is_active }) = &mut self.card else { return Ok(Next::Stay) };
        let card = Some(play.card.id.to_string());
        match play.typed(lang, words) {
            Step::Show => put!("{}", play.shown(lang, self.paint)),
            Step::Say(said) => say!("{}", printable(&said)),
            Step::Leave if self.opened.session.phase().waiting().and_then(Waiting::artifact).is_some() => {
                *is_active = false;
                self.tell_now();
            }
            Step::Leave => say!("{}", lang.card_first_page()),
            Step::Send(answers) => return self.act(Action::Answer { card, answers }, "").await,
            Step::Skip => return self.act(Action::Skip { card }, "").await,
        }
        Ok(Next::Stay)
    }

    async fn command(&mut self, slash: Slash, rest: &str, line: &str) -> Result<Next> {
        let takes_nothing = slash.usage(self.lang) == slash.name(self.lang);
        if takes_nothing && !rest.is_empty() {
            // `/accept but shorter` is no acceptance.
            return self.needs(slash);
        }
        let session = self.id.to_string();
        let (artifact, decision, card) = self.pending();
        let on = || OnSession { session: self.id.to_string() };
        let some = || Some(rest.to_owned()).filter(|rest| !rest.is_empty());
        let command = match slash {
            Slash::Quit => return Ok(Next::Leave),
            Slash::Help => return Ok(self.help()),
            Slash::Show => {
                screen::head(self.lang, &self.opened);
                self.tell();
                return Ok(Next::Stay);
            }
            Slash::Board => return self.board(rest),
            Slash::Context => {
                let (prompt, run) = rest.split_whitespace().partition::<Vec<_>, _>(|word| *word == "prompt");
                let run = run.first().map(ToString::to_string);
                look::context(self.desk, &Context { session, run, prompt: !prompt.is_empty() }).await?;
                return Ok(Next::Stay);
            }
            Slash::Log => return self.log(rest == "all").await,
            Slash::Say if rest.is_empty() => return self.needs(slash),
            Slash::Say => {
                let action = Action::SubmitInput { text: rest.into(), values: BTreeMap::new() };
                return self.act(action, line).await;
            }
            Slash::Answer if rest.is_empty() && self.card.is_some() => {
                if let Some(card) = &mut self.card {
                    card.is_active = true;
                    put!("{}", card.play.shown(self.lang, self.paint));
                }
                return Ok(Next::Stay);
            }
            Slash::Answer => {
                let questions = self.opened.session.phase().waiting().and_then(Waiting::card);
                let keys: Vec<&str> =
                    questions.iter().flat_map(|card| &card.questions).map(|question| question.id.as_str()).collect();
                Command::Answer(Answer { session, answers: command::pairs(rest, &keys), card })
            }
            Slash::Edit if rest.is_empty() => return self.needs(slash),
            Slash::Edit => match self.edited(rest).await? {
                Some(edit) => Command::Edit(edit),
                None => return Ok(Next::Stay),
            },
            Slash::Cell => {
                let mut words = rest.splitn(3, ' ').map(str::to_owned);
                let (Some(tag), Some(key), Some(value)) = (words.next(), words.next(), words.next()) else {
                    return self.needs(slash);
                };
                Command::EditCell(EditCell { session, tag, key, value, rev: None })
            }
            Slash::Release => {
                let Some((tag, key)) = rest.split_once(' ') else { return self.needs(slash) };
                Command::ReleaseCell(ReleaseCell { session, tag: tag.to_owned(), key: key.to_owned(), rev: None })
            }
            Slash::Budget => match budget(session, rest) {
                Some(set) => Command::SetBudget(set),
                None => return self.needs(slash),
            },
            Slash::Select if rest.is_empty() => return self.needs(slash),
            Slash::Select => Command::Select(Select { session, pack: rest.to_owned() }),
            Slash::Upgrade => Command::UpgradePack(UpgradePack { session, pack: some() }),
            Slash::Confirm => Command::Confirm(on()),
            Slash::Approve => Command::Approve(OnDecision { session, decision }),
            Slash::No => {
                let reason = rest.into();
                return self.act(Action::RejectStep { decision, reason }, line).await;
            }
            Slash::Accept => Command::Accept(OnArtifact { session, artifact }),
            Slash::Reject => Command::Reject(Reject { session, reason: some(), artifact, decision: None }),
            Slash::Discard => Command::Discard(OnArtifact { session, artifact }),
            Slash::Skip => Command::Skip(OnCard { session, card }),
            Slash::Retry => Command::Retry(on()),
            Slash::Stop => Command::Stop(on()),
            Slash::Finish => Command::Finish(on()),
            Slash::Reveal => Command::Reveal(on()),
        };
        match act::action_of(self.desk, command, &self.opened)? {
            Some(action) => self.act(action, line).await,
            None => Ok(Next::Stay),
        }
    }

    /// What was on the screen, by number: artifact, decision, card.
    fn pending(&self) -> (Option<String>, Option<String>, Option<String>) {
        let waiting = self.opened.session.phase().waiting();
        let decision = match waiting {
            Some(Waiting::ApproveStep(decision)) => Some(decision.id.to_string()),
            _ => None,
        };
        let card = waiting.and_then(Waiting::card).map(|card| card.id.to_string());
        (waiting.and_then(Waiting::artifact).map(|id| id.to_string()), decision, card)
    }

    fn needs(&self, slash: Slash) -> Result<Next> {
        Err(Usage(self.lang.chat_needs(slash.usage(self.lang))).into())
    }

    /// Posts an action and stays until the session waits again.
    async fn act(&mut self, action: Action, typed: &str) -> Result<Next> {
        let progress = Progress::begin(self.desk, &self.opened, self.how());
        let hush = (self.how() == How::Live).then(Hush::begin);
        // One that came before the action is not meant for its work.
        self.interrupts.mark_unchanged();
        let answered = self.desk.fleet.act(&self.id, &action).await;
        let worked = match &answered {
            Ok(Answered::Heard { .. }) => self.settle().await,
            Ok(Answered::Refused { .. }) | Err(_) => Ok(()),
        };
        progress.end().await;
        drop(hush);
        let (before, kept) = (self.opened.head, self.opened.session.incomplete().len());
        let artifacts = self.opened.session.artifacts().to_vec();
        self.opened = self.desk.fleet.look(&self.id).await?;
        self.kept = self.opened.session.incomplete().get(kept..).and_then(<[_]>::last).map(|kept| kept.text.chars().count());
        worked?;
        let Answered::Refused { refusal } = answered? else {
            self.follow_script(action.verb());
            if leaves_the_screen(action.verb()) && self.opened.session.artifacts() == artifacts {
                say!("{}", self.lang.chat_done());
                self.tell_now();
                return Ok(Next::Stay);
            }
            return Ok(Next::Moved);
        };
        let session = &self.opened.session;
        let why = words::session::refusal(self.lang, session, &action, &refusal);
        say!("{}", self.paint.bold(&printable(&self.lang.refused(why))));
        self.draft = typed.to_owned();
        if self.opened.head != before {
            say!("{}", self.lang.chat_gone_on());
            return Ok(Next::Moved);
        }
        say!("{}", printable(&self.lang.refused_pending(words::session::pending(self.lang, session))));
        self.tell_now();
        Ok(Next::Stay)
    }

    /// Goes on with work that is under way.
    async fn work(&mut self) -> Result<()> {
        let progress = Progress::begin(self.desk, &self.opened, self.how());
        let hush = (self.how() == How::Live).then(Hush::begin);
        let worked = self.settle().await;
        progress.end().await;
        drop(hush);
        self.opened = self.desk.fleet.look(&self.id).await?;
        worked
    }

    /// Waits until the session waits; Ctrl-C stops what runs.
    async fn settle(&mut self) -> Result<()> {
        loop {
            tokio::select! {
                settled = self.desk.fleet.settled(&self.id) => {
                    settled?;
                    return Ok(());
                }
                Ok(()) = self.interrupts.changed() => {
                    // Refused where it has just ended by itself.
                    self.desk.fleet.act(&self.id, &Action::Stop).await?;
                }
            }
        }
    }

    fn how(&self) -> How {
        let is_watched = self.paint.is_terminal && Paint::of_stderr().is_terminal;
        if is_watched { How::Live } else { How::Lines }
    }

    /// Remembers, on coming back, where things stood: what was told before is not told again, but for the last text.
    fn recall(&mut self) {
        let session = &self.opened.session;
        if session.runs().is_empty() {
            return;
        }
        self.told_artifacts = session.artifacts().len().saturating_sub(1);
        screen::head(self.lang, &self.opened);
    }

    /// Tells what is new, what is waited for, and what can be done.
    fn tell(&mut self) {
        let session = &self.opened.session;
        let waiting = session.phase().waiting();
        let in_review = waiting.and_then(Waiting::artifact);
        let is_done = matches!(session.phase(), Phase::Done);
        let news = session.artifacts().get(self.told_artifacts..).unwrap_or_default();
        self.told_artifacts = session.artifacts().len();
        say!("");
        if !is_done {
            // What was accepted without a review is read here, and nowhere else.
            for artifact in news.iter().filter(|artifact| artifact.state == ArtifactState::Accepted) {
                put!("{}", screen::texts(self.lang, self.paint, session, artifact));
            }
        }
        put!("{}", screen::situation(self.lang, self.paint, session));
        if let Some(characters) = self.kept.take() {
            say!("{}", self.lang.chat_kept(characters));
        }
        if let Some(artifact) = in_review {
            put!("{}", self.changes(artifact));
        }
        let open = waiting.and_then(Waiting::card).cloned();
        self.card = match (open, self.card.take()) {
            (None, _) => None,
            (Some(open), Some(at)) if at.play.card == open => Some(at),
            (Some(open), _) => Some(AtCard { play: CardPlay::new(open), is_active: in_review.is_none() }),
        };
        match &self.card {
            Some(at) if at.is_active => put!("{}", at.play.shown(self.lang, self.paint)),
            Some(at) => put!("{}\n{}", self.lang.card_in_review(), screen::card_text(&at.play.card)),
            None => {}
        }
        self.tell_now();
    }

    /// Tells what can be done now.
    fn tell_now(&self) {
        let keys = now(self.lang, &self.opened.session, self.card.as_ref().is_some_and(|card| card.is_active));
        if !keys.is_empty() {
            let line = format!("{}{}", self.lang.chat_now(), keys.join(" · "));
            say!("\n{}", self.paint.dim(&self.paint.wrap(&line, "", "  ")));
        }
        if let Some((line, _)) = self.suggestion() {
            say!("{}", self.paint.accent(&self.paint.wrap(&self.lang.chat_suggestion(line), "", "  ")));
        }
    }

    /// The script's next line, where it would be heard.
    fn suggestion(&self) -> Option<&(String, UserLine)> {
        self.script.front().filter(|(_, user)| self.opened.session.hears(verb(user)))
    }

    /// Takes off the script what the person did, in the script's words or in their own, and what can no longer come.
    fn follow_script(&mut self, did: Verb) {
        self.script.pop_front_if(|(_, user)| verb(user) == did);
        let phase = self.opened.session.phase();
        if phase.waiting().is_some_and(|waiting| waiting.cause().is_none()) {
            while self.script.pop_front_if(|(_, user)| !phase.hears(verb(user))).is_some() {}
        }
    }

    /// Shows what changed in an artifact's texts since the version before, where there is one.
    fn changes(&self, artifact: ArtifactId) -> String {
        let session = &self.opened.session;
        let artifact = session.artifact(artifact);
        let mut text = String::new();
        for (tag, number) in artifact.items.iter().filter(|(tag, _)| !session.is_hidden(tag)) {
            let item = session.board().item(*number);
            let Some(before) = session.board().history(tag).rev().find(|other| other.number < item.number) else { continue };
            let skipped = |count: usize| self.lang.chat_unchanged_lines(count);
            let changes = self.paint.changes(&before.content, &item.content, skipped);
            let shown = match changes {
                Some(changes) => {
                    format!("{}\n{changes}\n", self.paint.bold(&printable(&self.lang.chat_changes(tag, before.number))))
                }
                None => format!("{}\n", printable(&self.lang.chat_no_changes(tag, before.number))),
            };
            text.push_str(&shown);
        }
        text
    }

    fn help(&self) -> Next {
        let lines = command::help(self.lang);
        let width = |text: &str| unicode_width::UnicodeWidthStr::width(text);
        let column = lines.iter().map(|(usage, _)| width(usage)).max().unwrap_or_default().min(30);
        for (usage, help) in lines {
            let first = format!("  {usage}{}  ", " ".repeat(column.saturating_sub(width(usage))));
            let is_narrow = self.paint.is_terminal && self.paint.columns() < column + 24;
            if is_narrow {
                say!("  {usage}\n{}", self.paint.wrap(help, "      ", "      "));
            } else {
                say!("{}", self.paint.wrap(help, &first, &" ".repeat(column + 4)));
            }
        }
        Next::Stay
    }

    async fn log(&self, whole: bool) -> Result<Next> {
        let (records, _) = self.desk.fleet.history(&self.id).await?;
        let skipped = if whole { 0 } else { records.len().saturating_sub(LOG_RECORDS) };
        for record in records.iter().skip(skipped) {
            say!("{}", screen::record(self.lang, record));
        }
        let session = &self.opened.session;
        let is_masked = wire::masks_incomplete(session);
        for incomplete in session.incomplete() {
            say!("{}", self.paint.bold(&self.lang.chat_incomplete(incomplete.call)));
            let text = if is_masked { self.lang.hidden_text() } else { self.paint.markdown(&incomplete.text) };
            say!("{text}");
        }
        Ok(Next::Stay)
    }

    fn board(&self, named: &str) -> Result<Next> {
        let session = &self.opened.session;
        let board = session.board();
        let heading = |tag: &Tag| {
            let item = board.newest(tag)?;
            let state: ItemState = board.state(item.number);
            Some(self.lang.chat_item_head(tag, words::session::state(self.lang, state), item.number))
        };
        if named.is_empty() {
            let lines: Vec<String> = board.tags().filter_map(heading).collect();
            say!("{}", if lines.is_empty() { self.lang.chat_board_empty() } else { printable(&lines.join("\n")) });
            return Ok(Next::Stay);
        }
        let Some(tag) = board.tags().find(|tag| tag.as_str() == named) else {
            let tags: Vec<&str> = board.tags().map(Tag::as_str).collect();
            return Err(report::Unknown(self.lang.chat_no_such_tag(named, tags.join(&self.lang.comma()))).into());
        };
        let Some(item) = board.newest(tag) else { return Ok(Next::Stay) };
        say!("{}", self.paint.bold(&printable(&heading(tag).unwrap_or_default())));
        let text = screen::shown(self.lang, session, item);
        let is_table = session.pack().is_some_and(|pack| pack.is_table(tag));
        match Table::read(Some(&text)).ok().filter(|_| is_table) {
            Some(table) => {
                for row in table.rows {
                    let yours = if row.source == CellSource::User { self.lang.chat_row_yours() } else { String::new() };
                    say!("{}", printable(format!("  {}: {}  {yours} {}", row.key, row.value, row.note).trim_end()));
                }
            }
            None => say!("{}", self.paint.markdown(text.trim_end())),
        }
        Ok(Next::Stay)
    }

    /// Lets the person edit a text: the words that were given, else in their editor, else typed anew.
    async fn edited(&mut self, rest: &str) -> Result<Option<Edit>> {
        let session = self.id.to_string();
        let (tag, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let parsed = Tag::parse(tag).ok();
        let item = parsed.as_ref().and_then(|tag| self.opened.session.board().newest(tag));
        let base = item.map(|item| item.number.to_string());
        let edit = |text: String| Edit { session, tag: tag.to_owned(), base, text: Some(text) };
        let is_hidden = parsed.as_ref().is_some_and(|tag| self.opened.session.is_hidden(tag));
        if !text.is_empty() || is_hidden {
            // Of a hidden text the session says itself that it is hidden.
            return Ok(Some(edit(text.to_owned())));
        }
        let before = item.map(|item| item.content.to_string()).unwrap_or_default();
        let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
        let after = match editor.filter(|_| self.paint.is_terminal) {
            Some(editor) => self.in_editor(&editor, &before)?,
            None => {
                say!("{}", self.lang.chat_edit_ask(tag));
                let initial = before.clone();
                match self.lines.next(Ask { prompt: PROMPT.to_owned(), initial, tags: vec![] }, &mut self.interrupts).await? {
                    Line::Text(text) => text,
                    Line::End => before.clone(),
                }
            }
        };
        if after.trim_end() == before.trim_end() {
            say!("{}", self.lang.chat_edit_same());
            return Ok(None);
        }
        Ok(Some(edit(after)))
    }

    fn in_editor(&self, editor: &str, text: &str) -> Result<String> {
        let failed = |error: String| anyhow!(self.lang.chat_editor_failed(editor, error));
        let file: PathBuf = self.desk.folder.join(format!("edit-{}-{}.md", self.id, std::process::id()));
        // Editors want the last line ended.
        std::fs::write(&file, format!("{}\n", text.trim_end_matches('\n')))?;
        let mut words = editor.split_whitespace();
        let program = words.next().unwrap_or_default();
        let status = std::process::Command::new(program).args(words).arg(&file).status();
        let after = std::fs::read_to_string(&file);
        std::fs::remove_file(&file).ok();
        match status {
            Ok(status) if status.success() => Ok(after?.trim_end_matches('\n').to_owned()),
            Ok(status) => Err(failed(status.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}

/// Listens for Ctrl-C from now on; each counts one up.
fn interrupts() -> Interrupts {
    let (pressed, interrupts) = watch::channel(0);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            pressed.send_modify(|count| *count += 1);
        }
    });
    interrupts
}

/// What words mean now. Where they are a verdict, the action names what they are about.
fn said(session: &Session, words: &str) -> Action {
    match session.phase().waiting() {
        Some(Waiting::ReviewArtifact { artifact, .. }) => {
            Action::Reject { artifact: Some(artifact.to_string()), reason: words.into() }
        }
        Some(Waiting::ApproveStep(decision)) => {
            Action::RejectStep { decision: Some(decision.id.to_string()), reason: words.into() }
        }
        Some(
            Waiting::SkillSelection
            | Waiting::Intake
            | Waiting::Input { .. }
            | Waiting::WorkerQuestions { .. }
            | Waiting::Revision { .. },
        )
        | None => Action::SubmitInput { text: words.into(), values: BTreeMap::new() },
    }
}

/// Makes an action of a script's line; letters get their texts from the open card.
pub fn scripted(session: &Session, user: UserLine) -> Result<Action, String> {
    match user {
        UserLine::Act(action) => Ok(action),
        UserLine::Answer { card, answers } => {
            let answers = resolve(session.phase().waiting().and_then(Waiting::card), &answers)?;
            Ok(Action::Answer { card, answers })
        }
    }
}

/// Says whether what is waited for stays as it is.
fn leaves_the_screen(verb: Verb) -> bool {
    match verb {
        Verb::SetBudget
        | Verb::EditItem
        | Verb::EditCell
        | Verb::ReleaseCell
        | Verb::UpgradePack
        | Verb::StartTask
        | Verb::CancelTask => true,
        Verb::SelectPack
        | Verb::SubmitInput
        | Verb::ConfirmIntake
        | Verb::Approve
        | Verb::RejectStep
        | Verb::Accept
        | Verb::Reject
        | Verb::Discard
        | Verb::Answer
        | Verb::Skip
        | Verb::Retry
        | Verb::Stop
        | Verb::Finish
        | Verb::Reveal => false,
    }
}

fn verb(user: &UserLine) -> Verb {
    match user {
        UserLine::Act(action) => action.verb(),
        UserLine::Answer { .. } => Verb::Answer,
    }
}

fn budget(session: String, rest: &str) -> Option<SetBudget> {
    let mut set = SetBudget { session, rounds: None, tokens: None, money: None, time: None };
    for pair in rest.split_whitespace() {
        let (key, value) = pair.split_once('=')?;
        let limit = match key {
            "rounds" => &mut set.rounds,
            "tokens" => &mut set.tokens,
            "money" => &mut set.money,
            "time" => &mut set.time,
            _ => return None,
        };
        *limit = Some(value.to_owned());
    }
    (!rest.trim().is_empty()).then_some(set)
}

/// What can be done now, the nearest first.
fn now(lang: Lang, session: &Session, is_at_card: bool) -> Vec<String> {
    let slash = |slash: Slash| slash.name(lang).to_owned();
    let Some(waiting) = session.phase().waiting() else { return vec![] };
    let mut keys = match waiting {
        Waiting::SkillSelection => vec![Slash::Select.usage(lang).to_owned()],
        Waiting::Intake if session.intake().missing().is_empty() => vec![lang.chat_words_intake(), slash(Slash::Confirm)],
        Waiting::Intake => vec![lang.chat_words_intake()],
        Waiting::Input { .. } if is_at_card => vec![Slash::Say.usage(lang).to_owned()],
        Waiting::Input { .. } => vec![lang.chat_words_input()],
        Waiting::ApproveStep(_) => vec![slash(Slash::Approve), lang.chat_words_reason()],
        Waiting::ReviewArtifact { .. } if is_at_card => vec![slash(Slash::Accept), slash(Slash::Discard)],
        Waiting::ReviewArtifact { .. } => vec![slash(Slash::Accept), lang.chat_words_reject(), slash(Slash::Discard)],
        Waiting::WorkerQuestions { .. } => vec![slash(Slash::Discard)],
        Waiting::Revision { .. } => vec![lang.chat_words_instruction(), slash(Slash::Accept), slash(Slash::Discard)],
    };
    if waiting.cause().is_some() {
        keys.insert(0, slash(Slash::Retry));
    }
    keys.push(slash(Slash::Help));
    keys
}
