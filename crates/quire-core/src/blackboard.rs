//! All items of a session: what was written, by whom, and what of it counts.
//!
//! Items never change; what changes is their state, and the blackboard remembers when it did. So [`Blackboard::at`] shows
//! it as it was at any earlier moment, and an old prompt can be built again.
//!
//! Who may read what is said here once, by [`View::read`]; isolation is the context's.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ids::{ItemNumber, Revision, RunId, TaskId, Timestamp};
use crate::pack::Merge;
use crate::tag::{Pattern, Tag};

/// One version of a tag's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its number.
    pub number: ItemNumber,
    /// Its tag.
    pub tag: Tag,
    /// Its text.
    pub content: Arc<str>,
    /// Who wrote it.
    pub source: Source,
    /// Items it was made from.
    pub dependencies: Vec<ItemNumber>,
    /// The turn it belongs to; 0 before the first.
    pub turn: u32,
    /// When it was written.
    pub time: Timestamp,
    born: Revision,
    born_as: ItemState,
    settled: Option<(Revision, ItemState)>,
}

/// Who wrote an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The user.
    User,
    /// The runtime.
    Runtime,
    /// A run.
    Run(RunId),
    /// A deep task.
    Task(TaskId),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Runtime => f.write_str("runtime"),
            Self::Run(run) => write!(f, "run {run}"),
            Self::Task(task) => write!(f, "task {task}"),
        }
    }
}

/// What an item's text counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemState {
    /// Handed in, not yet a fact.
    Drafted,
    /// A fact.
    Accepted,
    /// Thrown away.
    Rejected,
    /// A draft that a rerun or an edit replaced, or a patch that was merged.
    Superseded,
}

impl ItemState {
    /// The state's name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Drafted => "drafted",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Superseded => "superseded",
        }
    }

    /// Says whether the text stands, as a fact or as a draft: it is neither thrown away nor replaced.
    pub fn stands(self) -> bool {
        match self {
            Self::Drafted | Self::Accepted => true,
            Self::Rejected | Self::Superseded => false,
        }
    }
}

/// A new item.
#[derive(Debug, Clone)]
pub struct NewItem {
    /// Its tag.
    pub tag: Tag,
    /// Its text.
    pub content: Arc<str>,
    /// Who wrote it.
    pub source: Source,
    /// Accepted from birth, or drafted.
    pub state: ItemState,
    /// Items it was made from.
    pub dependencies: Vec<ItemNumber>,
    /// The turn it belongs to.
    pub turn: u32,
    /// When.
    pub time: Timestamp,
}

/// All items of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Blackboard {
    items: Vec<Item>,
    by_tag: BTreeMap<Tag, Vec<ItemNumber>>,
}

impl Blackboard {
    /// Writes an item and returns its number.
    pub fn write(&mut self, now: Revision, new: NewItem) -> ItemNumber {
        let number = ItemNumber(self.items.len() as u64 + 1);
        self.by_tag.entry(new.tag.clone()).or_default().push(number);
        self.items.push(Item {
            number,
            tag: new.tag,
            content: new.content,
            source: new.source,
            dependencies: new.dependencies,
            turn: new.turn,
            time: new.time,
            born: now,
            born_as: new.state,
            settled: None,
        });
        number
    }

    /// Says what a draft came to. Only a draft can be settled, and once; an accepted patch is superseded when it is merged.
    pub fn settle(&mut self, now: Revision, number: ItemNumber, state: ItemState) {
        let item = &mut self.items[index(number)];
        assert!(item.born_as == ItemState::Drafted && item.settled.is_none(), "item {number} is settled already");
        item.settled = Some((now, state));
    }

    /// Returns an item.
    pub fn item(&self, number: ItemNumber) -> &Item {
        &self.items[index(number)]
    }

    /// Returns an item's present state.
    pub fn state(&self, number: ItemNumber) -> ItemState {
        let item = self.item(number);
        item.settled.map_or(item.born_as, |settled| settled.1)
    }

    /// Returns every tag ever written, in order.
    pub fn tags(&self) -> impl Iterator<Item = &Tag> {
        self.by_tag.keys()
    }

    /// Returns the newest item of a tag in any state.
    pub fn newest(&self, tag: &Tag) -> Option<&Item> {
        self.by_tag.get(tag)?.last().map(|number| self.item(*number))
    }

    /// Returns all items of a tag, oldest first, in any state.
    pub fn history(&self, tag: &Tag) -> impl DoubleEndedIterator<Item = &Item> {
        self.by_tag.get(tag).into_iter().flatten().map(|number| self.item(*number))
    }

    /// Returns all items, oldest first.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the newest accepted item of a tag.
    pub fn accepted(&self, tag: &Tag) -> Option<&Item> {
        self.history(tag).rev().find(|item| self.state(item.number) == ItemState::Accepted)
    }

    /// Shows the blackboard as it was after the event `at`.
    pub fn at(&self, at: Revision) -> View<'_> {
        View { board: self, at }
    }
}

fn index(number: ItemNumber) -> usize {
    number.0 as usize - 1
}

/// The blackboard at one moment.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    board: &'a Blackboard,
    at: Revision,
}

impl<'a> View<'a> {
    /// Returns an item's state at this moment; none: not yet written.
    pub fn state(&self, item: &Item) -> Option<ItemState> {
        if item.born > self.at {
            return None;
        }
        match item.settled {
            Some((when, state)) if when <= self.at => Some(state),
            _ => Some(item.born_as),
        }
    }

    /// Returns the tags that have an item at this moment, in order.
    pub fn tags(&self) -> impl Iterator<Item = &'a Tag> {
        let view = *self;
        self.board.by_tag.iter().filter(move |(_, numbers)| view.board.item(numbers[0]).born <= view.at).map(|(tag, _)| tag)
    }

    /// Returns the items of `tag`, which `pattern` reads, that may be seen through it, oldest first.
    ///
    /// Accepted ones; drafted ones only where the pattern's own last part asks for drafts or candidates.
    pub fn visible(&self, pattern: &Pattern, tag: &Tag) -> Vec<&'a Item> {
        let with_drafts = pattern.asks_for_drafts();
        let seen = |item: &&Item| match self.state(item) {
            Some(ItemState::Accepted) => true,
            Some(ItemState::Drafted) => with_drafts,
            Some(ItemState::Rejected | ItemState::Superseded) | None => false,
        };
        self.board.history(tag).filter(seen).collect()
    }

    /// Says whether `tag` has an item that waits for a verdict at this moment.
    pub fn has_draft(&self, tag: &Tag) -> bool {
        self.board.history(tag).any(|item| self.state(item) == Some(ItemState::Drafted))
    }

    /// Reads by one pattern: for each matching tag that `allowed` lets through, in order, the visible items.
    ///
    /// Where the pattern matches a draft and its promotion, only the promotion is read.
    pub fn read(&self, pattern: &Pattern, merge: Merge, allowed: impl Fn(&Tag) -> bool) -> Vec<(&'a Tag, Vec<&'a Item>)> {
        let found: Vec<(&Tag, Vec<&Item>)> = (self.tags())
            .filter(|tag| pattern.reads(tag) && allowed(tag))
            .map(|tag| (tag, self.visible(pattern, tag)))
            .filter(|(_, items)| !items.is_empty())
            .collect();
        let promoted = |tag: &Tag| tag.promotion().is_some_and(|promotion| found.iter().any(|(other, _)| **other == promotion));
        (found.iter())
            .filter(|(tag, _)| !promoted(tag))
            .map(|(tag, items)| match merge {
                Merge::Latest => (*tag, items.last().copied().into_iter().collect()),
                Merge::Concat => (*tag, items.clone()),
            })
            .collect()
    }

    /// Says whether anything can be read through `pattern`.
    pub fn has(&self, pattern: &Pattern) -> bool {
        self.tags().any(|tag| pattern.reads(tag) && !self.visible(pattern, tag).is_empty())
    }
}
