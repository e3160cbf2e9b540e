//! Draws: made once at the start of each turn of play, before the agent is asked, and never by a model.
//!
//! A draw is owed from the user's words until its seed is recorded, so a crash or a stop between the two neither loses it nor
//! makes it twice.

use super::{Effect, Heard, Phase, Running, Session};
use crate::blackboard::{ItemState, Source};
use crate::chance::{self, Seed};
use crate::ids::Timestamp;

impl Session {
    /// Orders the draws that this turn still owes; none where nothing is to be drawn.
    pub(super) fn draw_what_is_owed(&mut self) -> Option<Effect> {
        let is_owed = self.drawn_turn < self.turn && !self.pack_in_use().chance.is_empty();
        is_owed.then(|| {
            self.phase = Phase::Running(Running::Drawing);
            Effect::Draw
        })
    }

    pub(super) fn drawn(&mut self, now: Timestamp, seed: Seed) -> Heard {
        if self.phase != Phase::Running(Running::Drawing) {
            return Err(self.refuse("nothing is to be drawn"));
        }
        self.drawn_turn = self.turn;
        for (tag, outcome) in chance::outcomes(&self.pack_in_use().chance, seed) {
            let shown = if self.is_hidden(&tag) { "drawn, hidden" } else { outcome.as_str() };
            self.log(format!("chance: {tag}: {shown}"));
            self.write(now, tag, outcome.into(), Source::Runtime, ItemState::Accepted, &[]);
        }
        Ok(self.ask_agent())
    }
}
