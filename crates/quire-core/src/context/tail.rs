//! What is left of texts when not all may stay: the newest end.
//!
//! Cuts fall between lines; only where not even the last line has room, between two grapheme clusters of it. What stays
//! is an untouched end of what was there.

use unicode_segmentation::UnicodeSegmentation;

use crate::blackboard::Item;
use crate::ids::ItemNumber;
use crate::tag::Tag;

/// An item's text, or the end of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown<'a> {
    pub(super) tag: &'a Tag,
    pub(super) item: ItemNumber,
    pub(super) text: &'a str,
    pub(super) cut: bool,
}

impl<'a> Shown<'a> {
    /// Shows all of an item.
    pub(super) fn whole(item: &'a Item) -> Self {
        Self { tag: &item.tag, item: item.number, text: &item.content, cut: false }
    }
}

/// Returns the longest end of `texts` that fits, in their order; the items' numbers say which is oldest.
///
/// `fits` is asked for ends that grow shorter, and holds of every end shorter than one that fits.
pub(super) fn tail<'a>(texts: &[Shown<'a>], fits: impl Fn(&[Shown<'a>]) -> bool) -> Vec<Shown<'a>> {
    let mut by_age: Vec<&Shown<'a>> = texts.iter().collect();
    by_age.sort_by_key(|shown| shown.item);
    let Some(newest) = by_age.last() else { return vec![] };

    let lines: Vec<Border> = by_age.iter().flat_map(|shown| line_borders(shown)).collect();
    let last_line = lines.last().map_or(0, |border| border.byte);
    let graphemes: Vec<Border> = (newest.text.get(last_line..).unwrap_or_default().grapheme_indices(true))
        .skip(1)
        .map(|(byte, _)| Border { item: newest.item, byte: last_line + byte })
        .collect();

    [lines, graphemes].iter().find_map(|borders| longest_end(texts, borders, &fits)).unwrap_or_default()
}

/// A place to cut: everything older goes, and what stands before `byte` in `item`.
#[derive(Debug, Clone, Copy)]
struct Border {
    item: ItemNumber,
    byte: usize,
}

fn line_borders<'s>(shown: &'s Shown<'_>) -> impl Iterator<Item = Border> + 's {
    let newlines = shown.text.match_indices('\n').map(|(byte, _)| byte + 1).filter(|byte| *byte < shown.text.len());
    std::iter::once(0).chain(newlines).map(|byte| Border { item: shown.item, byte })
}

fn longest_end<'a>(texts: &[Shown<'a>], borders: &[Border], fits: &impl Fn(&[Shown<'a>]) -> bool) -> Option<Vec<Shown<'a>>> {
    let first = borders.partition_point(|border| !fits(&end_from(texts, *border)));
    let end = end_from(texts, *borders.get(first)?);
    // A count need not shrink with every grapheme; what does not fit is never given.
    fits(&end).then_some(end)
}

fn end_from<'a>(texts: &[Shown<'a>], border: Border) -> Vec<Shown<'a>> {
    let end_of = |shown: &Shown<'a>| match shown.item.cmp(&border.item) {
        std::cmp::Ordering::Less => None,
        std::cmp::Ordering::Equal => {
            let text = shown.text.get(border.byte..).expect("a border stands between characters");
            Some(Shown { text, cut: shown.cut || border.byte > 0, ..*shown })
        }
        std::cmp::Ordering::Greater => Some(*shown),
    };
    texts.iter().filter_map(end_of).collect()
}
