//! Many sessions in one data folder: what those that wait cost, and how they are found.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use quire_core::ids::SessionId;
use quire_runtime::fleet::Fleet;

use crate::machine::resident_bytes;
use crate::play::{fleet, start, take_turn};
use crate::report::{Page, median, time};

/// Sessions at which memory is read.
const SIZES: [usize; 2] = [10_000, 100_000];
/// Sessions that are begun at once.
const AT_ONCE: usize = 256;
/// Sessions that are opened for a median.
const OPENED: usize = 200;

/// Measures, and adds its section.
pub async fn measure(page: &mut Page) -> Result<()> {
    page.section(
        "Many sessions that wait",
        "One process, one data folder. Memory is what the process holds after all sessions have been begun and each hundredth has had \
         a turn, less what it held after the first hundred; the database's own cache counts too.",
    );
    let folder = tempfile::tempdir()?;
    let (fleet, store) = fleet(folder.path(), Arc::default()).await?;
    begin(&fleet, 0, 100).await?;
    let base = resident_bytes().context("the system does not say how much memory a process holds")?;
    let mut begun = 100;
    for size in SIZES {
        begin(&fleet, begun, size).await?;
        begun = size;
        let held = resident_bytes().context("the system does not say how much memory a process holds")?;
        let each = held.saturating_sub(base) as f64 / size as f64;
        page.line(&format!("memory of each of {size} waiting sessions"), format!("{each:.0} bytes"), "< 1 KB");
    }
    let mut listed = vec![];
    for _ in 0..5 {
        let before = Instant::now();
        let list = store.list().await?;
        listed.push(before.elapsed().as_secs_f64());
        ensure!(list.len() == begun, "the list is whole");
    }
    page.line("list of 100000 sessions", time(Duration::from_secs_f64(median(listed))), "");
    let mut opened = vec![];
    for number in 0..OPENED {
        let before = Instant::now();
        fleet.look(&name(number * (begun / OPENED))).await?;
        opened.push(before.elapsed().as_secs_f64());
    }
    page.line("opening one of them", time(Duration::from_secs_f64(median(opened))), "");
    Ok(())
}

async fn begin(fleet: &Fleet, from: usize, to: usize) -> Result<()> {
    let work = stream::iter(from..to).map(async |number| {
        let id = name(number);
        fleet.start(&id, start()).await?;
        if number.is_multiple_of(100) {
            take_turn(fleet, &id, number).await?;
        }
        Ok::<(), anyhow::Error>(())
    });
    work.buffer_unordered(AT_ONCE).try_collect().await
}

fn name(number: usize) -> SessionId {
    SessionId::new(format!("session {number}"))
}
