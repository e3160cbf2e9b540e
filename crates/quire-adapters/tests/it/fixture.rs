//! Bodies as servers really send them, read in one piece and cut anywhere.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use futures::stream::{self, Iter};
use quire_adapters::providers::{Interruption, shown_reasoning};
use quire_core::message::Reply;
use quire_runtime::ports::{Delta, ModelError};

use crate::heard::{Heard, shown};

/// A body that some server sends, by the fault it shows.
pub struct Fixture {
    pub name: &'static str,
    pub body: Vec<u8>,
    pub interruption: Option<Interruption>,
}

impl Fixture {
    /// A body that ends as it stands.
    pub fn whole(name: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { name, body: body.into(), interruption: None }
    }
}

/// A reply or a failure, and what passed before.
pub type Outcome = (Result<Reply, ModelError>, Heard);

/// Pieces of a body, as a connection gives them.
pub type Bytes = Iter<std::vec::IntoIter<Result<Vec<u8>, Interruption>>>;

static RUNTIME: LazyLock<tokio::runtime::Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime"));

/// Reads a fixture cut at the given bytes.
pub fn run(
    fixture: &Fixture,
    cuts: &[usize],
    read: impl AsyncFn(Bytes, &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError>,
) -> Outcome {
    let mut chunks = Vec::new();
    let mut rest = fixture.body.as_slice();
    let mut offset = 0;
    for cut in cuts {
        let (chunk, after) = rest.split_at(cut - offset);
        chunks.push(Ok(chunk.to_vec()));
        (rest, offset) = (after, *cut);
    }
    chunks.push(Ok(rest.to_vec()));
    chunks.extend(fixture.interruption.clone().map(Err));
    let heard = Heard::default();
    let outcome = RUNTIME.block_on(read(stream::iter(chunks), &|delta| heard.take(delta)));
    (outcome, heard)
}

/// Tells what became of each fixture.
pub fn told(fixtures: &[Fixture], read: fn(&Fixture, &[usize]) -> Outcome) -> String {
    let mut out = String::new();
    for fixture in fixtures {
        let (outcome, heard) = read(fixture, &[]);
        out += &format!("{}\n", fixture.name);
        shown(&outcome).lines().for_each(|line| out += &format!("  {line}\n"));
        let (text, _, arguments) = heard.whole();
        if outcome.is_err() && !(text.is_empty() && arguments.is_empty()) {
            out += &format!("  passed on {:?}\n", text + &arguments);
        }
        out.push('\n');
    }
    out
}

pub fn assert_passed_on(fixtures: &[Fixture], read: fn(&Fixture, &[usize]) -> Outcome) {
    for fixture in fixtures {
        let (Ok(reply), heard) = read(fixture, &[]) else { continue };
        let (text, reasoning, _) = heard.whole();
        assert_eq!((&*text, &*reasoning), (&*reply.text, &*shown_reasoning(&reply.reasoning)), "{}", fixture.name);
    }
}

/// Cuts each fixture at each of its bytes, but for the long ones, which are cut at random elsewhere.
pub fn assert_any_one_cut(fixtures: &[Fixture], read: fn(&Fixture, &[usize]) -> Outcome) {
    for fixture in fixtures.iter().filter(|fixture| fixture.body.len() < 2_500) {
        let (whole, whole_heard) = read(fixture, &[]);
        for cut in 0..=fixture.body.len() {
            let (outcome, heard) = read(fixture, &[cut]);
            assert_eq!(outcome, whole, "{} cut at {cut}", fixture.name);
            assert_eq!(heard.whole(), whole_heard.whole(), "{} cut at {cut}", fixture.name);
        }
    }
}

pub fn assert_cuts(fixture: &Fixture, cuts: &BTreeSet<usize>, read: fn(&Fixture, &[usize]) -> Outcome) {
    let cuts: Vec<usize> = cuts.iter().copied().filter(|cut| *cut <= fixture.body.len()).collect();
    let (whole, whole_heard) = read(fixture, &[]);
    let (outcome, heard) = read(fixture, &cuts);
    assert_eq!(outcome, whole, "{} cut at {cuts:?}", fixture.name);
    assert_eq!(heard.whole(), whole_heard.whole(), "{} cut at {cuts:?}", fixture.name);
}
