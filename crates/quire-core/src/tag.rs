//! Names on the blackboard, and the patterns that ask for them.
//!
//! A [`Tag`] names a text (`角色.A.设定`), a [`Pattern`] says which tags are meant (`角色.*.设定`, `大纲.*`, `**`).
//! Both are parsed once, at the edge; what is inside is well-formed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

/// The dotted name of a text, in Unicode NFC. No part is empty, none holds `*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Tag(Arc<str>);

/// Why a text is not a tag or not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TagError {
    /// Nothing, or nothing between two dots.
    #[error("`{0}` has an empty part; write parts joined by single dots, like `chapter.draft`")]
    EmptyPart(String),
    /// A star where a name is needed.
    #[error("`{0}` holds `*`; a tag names one text, only patterns have stars")]
    Star(String),
    /// A space at a part's edge, or a character nobody can see.
    #[error("`{0}` holds a line break, an invisible character or a space at the edge of a part; take it out")]
    Unprintable(String),
    /// A star glued to letters, alone, or `**` beside other parts.
    #[error(
        "`{0}` has a star that is not a whole part among others; write `role.*.plan` or `outline.*`, or `**` alone for all tags"
    )]
    StarPlace(String),
    /// A role's name with a dot or a star.
    #[error("`{0}` is not one part of a tag; a role's name has no dot and no star")]
    NotOnePart(String),
}

/// What a tag's last part says about how final its text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LifeCycle {
    /// 候选: possible, not fact.
    Candidate,
    /// 草稿: under way.
    Draft,
    /// 确认稿: made from a draft by acceptance.
    Confirmed,
    /// 当前: the present value.
    Current,
    /// 更新: a change to the present value.
    Update,
}

const LIFE_CYCLES: [(&str, &str, LifeCycle); 5] = [
    ("候选", "candidate", LifeCycle::Candidate),
    ("草稿", "draft", LifeCycle::Draft),
    ("确认稿", "confirmed", LifeCycle::Confirmed),
    ("当前", "current", LifeCycle::Current),
    ("更新", "update", LifeCycle::Update),
];

/// The first part of the tags that hold what deep tasks brought.
const DEEP_TASK: &str = "委托";

impl LifeCycle {
    /// Reads one part of a tag.
    pub fn of_part(part: &str) -> Option<Self> {
        LIFE_CYCLES.iter().find(|(chinese, english, _)| part == *chinese || part == *english).map(|found| found.2)
    }
}

impl Tag {
    /// Reads a tag; normalises it to NFC.
    pub fn parse(raw: &str) -> Result<Self, TagError> {
        let text: String = raw.nfc().collect();
        for part in text.split('.') {
            check_part(part, &text)?;
            if part.contains('*') {
                return Err(TagError::Star(text));
            }
        }
        Ok(Self(text.into()))
    }

    /// Returns the whole name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the parts in order; at least one.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// Returns what the last part says of the text's life cycle.
    pub fn life_cycle(&self) -> Option<LifeCycle> {
        self.parts().next_back().and_then(LifeCycle::of_part)
    }

    /// Returns the tag without its life-cycle part, where it has one and something is left.
    pub fn stem(&self) -> Tag {
        match (self.life_cycle(), self.0.rsplit_once('.')) {
            (Some(_), Some((stem, _))) => Self(stem.into()),
            _ => self.clone(),
        }
    }

    /// Returns every name the same text bears through its life, this one first: the bare stem, and the stem with each life-cycle part.
    pub fn siblings(&self) -> Vec<Tag> {
        let mut stem = self.stem();
        while stem != stem.stem() {
            stem = stem.stem();
        }
        let named = LIFE_CYCLES.iter().flat_map(|(chinese, english, _)| [chinese, english]);
        let grown: Vec<Tag> = named.map(|part| Self(format!("{stem}.{part}").into())).collect();
        [self.clone(), stem].into_iter().chain(grown).collect()
    }

    /// Returns the tag that acceptance writes for a draft: `X.草稿` gives `X.确认稿`, `X.draft` gives `X.confirmed`.
    pub fn promotion(&self) -> Option<Tag> {
        let (stem, last) = self.0.rsplit_once('.')?;
        match last {
            "草稿" => Some(Self(format!("{stem}.确认稿").into())),
            "draft" => Some(Self(format!("{stem}.confirmed").into())),
            _ => None,
        }
    }
}

fn check_part(part: &str, whole: &str) -> Result<(), TagError> {
    if part.is_empty() {
        return Err(TagError::EmptyPart(whole.to_owned()));
    }
    if part.trim() != part || part.chars().any(|letter| letter.is_control() || is_invisible(letter)) {
        return Err(TagError::Unprintable(whole.to_owned()));
    }
    Ok(())
}

/// Says whether a character takes no room, so that two tags with and without it look the same.
///
/// The joiners U+200C and U+200D are not among them: Persian and many emoji are spelled with them.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for Tag {
    type Error = TagError;
    fn try_from(raw: String) -> Result<Self, TagError> {
        Self::parse(&raw)
    }
}

impl From<Tag> for String {
    fn from(tag: Tag) -> Self {
        tag.0.as_ref().to_owned()
    }
}

/// One valid part of a tag; a run's role is one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RoleId(Arc<str>);

impl RoleId {
    /// Reads a role's name: one part, so no dot and no star.
    pub fn parse(raw: &str) -> Result<Self, TagError> {
        let text: String = raw.nfc().collect();
        check_part(&text, &text)?;
        if text.contains(['*', '.']) {
            return Err(TagError::NotOnePart(text));
        }
        Ok(Self(text.into()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RoleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for RoleId {
    type Error = TagError;
    fn try_from(raw: String) -> Result<Self, TagError> {
        Self::parse(&raw)
    }
}

impl From<RoleId> for String {
    fn from(role: RoleId) -> Self {
        role.0.as_ref().to_owned()
    }
}

/// Which tags are meant.
///
/// `角色.*.设定`: a `*` in the middle is exactly one part. `角色.A.*`: a `*` at the end is any number of parts, also none.
/// `**` alone: every tag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(Arc<str>);

impl Pattern {
    /// Reads a pattern; normalises it to NFC.
    pub fn parse(raw: &str) -> Result<Self, TagError> {
        let text: String = raw.nfc().collect();
        if text == "**" {
            return Ok(Self(text.into()));
        }
        for (index, part) in text.split('.').enumerate() {
            check_part(part, &text)?;
            let whole_star = part == "*" && (index > 0 || text.contains('.'));
            if part.contains('*') && !whole_star {
                return Err(TagError::StarPlace(text));
            }
        }
        Ok(Self(text.into()))
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the parts in order.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// Says whether the pattern means every tag: it is `**`, or `*.*`, which comes to the same.
    pub fn is_all(&self) -> bool {
        matches!(&*self.0, "**" | "*.*")
    }

    /// Returns the tag, where the pattern has no star.
    pub fn as_tag(&self) -> Option<Tag> {
        (!self.0.contains('*')).then(|| Tag(self.0.clone()))
    }

    /// Says whether `tag` is meant.
    pub fn matches(&self, tag: &Tag) -> bool {
        if self.is_all() {
            return true;
        }
        let mut tag_parts = tag.parts();
        let mut parts = self.parts().peekable();
        while let Some(part) = parts.next() {
            if part == "*" && parts.peek().is_none() {
                return true;
            }
            match tag_parts.next() {
                Some(tag_part) if part == "*" || part == tag_part => {}
                _ => return false,
            }
        }
        tag_parts.next().is_none()
    }

    /// Says whether texts of `tag` may be read through this pattern: it is meant, and what a deep task brought (`委托.…`) is
    /// asked for by that word and not by a star.
    pub fn reads(&self, tag: &Tag) -> bool {
        let brought_by_task = tag.parts().next() == Some(DEEP_TASK);
        self.matches(tag) && (!brought_by_task || self.parts().next() == Some(DEEP_TASK))
    }

    /// Says whether drafted items may be seen through this pattern: only where its own last part asks for drafts or candidates.
    pub fn asks_for_drafts(&self) -> bool {
        let last = self.parts().next_back().and_then(LifeCycle::of_part);
        matches!(last, Some(LifeCycle::Draft | LifeCycle::Candidate))
    }

    /// Returns how many `*` stand between two parts (or before one); a trailing star is not counted.
    pub fn middle_stars(&self) -> usize {
        let count = self.parts().filter(|part| *part == "*").count();
        count - usize::from(self.parts().next_back() == Some("*"))
    }

    /// Returns the pattern with its middle star replaced by a role.
    pub fn bind(&self, role: &RoleId) -> Pattern {
        let last = self.parts().count() - 1;
        let bound: Vec<&str> = (self.parts().enumerate())
            .map(|(index, part)| if part == "*" && index < last { role.as_str() } else { part })
            .collect();
        Self(bound.join(".").into())
    }

    /// Returns the names that the same texts bear through their lives, this one first, as [`Tag::siblings`] does.
    ///
    /// A pattern with a star at its end means tags of any length, so it has no other name.
    pub fn siblings(&self) -> Vec<Pattern> {
        match self.parts().next_back() {
            Some("*" | "**") => vec![self.clone()],
            _ => Tag(self.0.clone()).siblings().into_iter().map(|tag| Pattern(tag.0)).collect(),
        }
    }

    /// Returns what acceptance writes for the drafts among these tags: `章.*.草稿` gives `章.*.确认稿`.
    pub fn promotion(&self) -> Option<Pattern> {
        // Promotion looks at the last part only, so stars before it do no harm.
        Tag(self.0.clone()).promotion().map(|tag| Pattern(tag.0))
    }

    /// Says whether every tag that `other` means is meant by this pattern, too: it is equal or wider.
    pub fn covers(&self, other: &Pattern) -> bool {
        if self.is_all() || other.is_all() {
            return self.is_all();
        }
        let (mine, theirs): (Vec<&str>, Vec<&str>) = (self.parts().collect(), other.parts().collect());
        cover(&mine, &theirs)
    }

    /// Says whether some tag is meant by both.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        if self.is_all() || other.is_all() {
            return true;
        }
        let (mine, theirs): (Vec<&str>, Vec<&str>) = (self.parts().collect(), other.parts().collect());
        overlap(&mine, &theirs)
    }
}

fn overlap(mine: &[&str], theirs: &[&str]) -> bool {
    match (mine, theirs) {
        ([], []) | (["*"], _) | (_, ["*"]) => true,
        ([], _) | (_, []) => false,
        ([a, mine @ ..], [b, theirs @ ..]) => (a == b || *a == "*" || *b == "*") && overlap(mine, theirs),
    }
}

fn cover(mine: &[&str], theirs: &[&str]) -> bool {
    match (mine, theirs) {
        ([], []) | (["*"], _) => true,
        // Their last star may stand for no part at all, which only a last star of ours allows.
        ([], _) | (_, [] | ["*"]) => false,
        ([a, mine @ ..], [b, theirs @ ..]) => (a == b || *a == "*") && cover(mine, theirs),
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for Pattern {
    type Error = TagError;
    fn try_from(raw: String) -> Result<Self, TagError> {
        Self::parse(&raw)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.0.as_ref().to_owned()
    }
}

impl From<&Tag> for Pattern {
    fn from(tag: &Tag) -> Self {
        Self(tag.0.clone())
    }
}
