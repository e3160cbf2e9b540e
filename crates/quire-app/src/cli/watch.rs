//! `quire watch`: a session as it works, whoever drives it.
//!
//! What is on disk is told record by record. Text as it streams is told by the process that drives; another one sees the
//! whole reply when it is recorded.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use quire_core::ids::{RecordId, SessionId};
use quire_core::session::Phase;

use super::{Desk, screen};
use crate::report;
use crate::wire;
use crate::words;

const LOOK_PAUSE: Duration = Duration::from_millis(150);

/// Watches until the session is done, cannot go on, or the watcher is interrupted.
pub async fn watch(desk: &Desk, session: &str) -> Result<ExitCode> {
    let id = SessionId::new(session);
    let mut seen = RecordId(0);
    loop {
        let newest = desk.store.newest(&id).await?;
        if newest > seen {
            let (records, _) = desk.fleet.history(&id).await?;
            let opened = desk.fleet.look(&id).await?;
            let masked = wire::Masked::of(&opened.session, &records);
            for record in records.iter().filter(|record| record.id > seen) {
                if desk.is_json {
                    println!("{}", masked.record(record));
                } else {
                    println!("{}", screen::record(desk.lang, record));
                }
            }
            // More may have been written since `newest` was read, and between the two readings.
            seen = records.last().map_or(newest, |last| last.id.max(newest));
            let is_all_told = opened.head <= seen;
            match opened.session.phase() {
                Phase::Error { .. } => return Ok(ExitCode::from(report::FINE)),
                Phase::Done if is_all_told => return Ok(ExitCode::from(report::FINE)),
                Phase::WaitingUser(_) if is_all_told && !desk.is_json => {
                    println!("       … {}", words::session::pending(desk.lang, &opened.session))
                }
                Phase::Done | Phase::WaitingUser(_) | Phase::Running(_) | Phase::Idle => {}
            }
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_PAUSE) => {}
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::from(report::FINE)),
        }
    }
}
