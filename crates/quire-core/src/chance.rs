//! Chance: what can be drawn, and how faces follow from a seed.
//!
//! The runtime gives a seed, which is recorded; everything else is computed here, so the same seed gives the same faces on
//! every machine and in every later version. Numbers come from SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
//! Number Generators, OOPSLA 2014), made fair for any number of faces by throwing away the numbers above the last whole
//! multiple of it. Where seeds come from is not known here.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::tag::Tag;

/// What a turn's draws follow from. As text: sixteen hexadecimal digits, which every reader of JSON keeps exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Seed(pub u64);

/// Why a text is not a seed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no seed; a seed is written in 1 to 16 hexadecimal digits")]
pub struct SeedError(String);

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl TryFrom<String> for Seed {
    type Error = SeedError;
    fn try_from(raw: String) -> Result<Self, SeedError> {
        u64::from_str_radix(&raw, 16).map(Self).map_err(|_| SeedError(raw))
    }
}

impl From<Seed> for String {
    fn from(seed: Seed) -> Self {
        seed.to_string()
    }
}

/// A draw of the pack: made once at the start of each turn of play.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chance {
    /// Where the outcome is written.
    pub tag: Tag,
    /// What is drawn.
    pub draw: Draw,
}

/// What can be drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Draw {
    /// Dice, each from 1 to the number of its sides.
    Dice {
        /// How many.
        count: u32,
        /// Their sides.
        sides: u32,
    },
    /// A number from 1 to 100.
    Percent,
    /// One of these, each as likely; never empty.
    Pick(Vec<String>),
}

/// Why a text names no draw.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no draw; write dice as `4d20` (1 to {dice} dice of 2 to {sides} sides), or `percent`",
    dice = Draw::DICE_MAX,
    sides = Draw::SIDES_MAX
)]
pub struct DrawError(String);

impl Draw {
    /// Most dice of one draw.
    pub const DICE_MAX: u32 = 100;
    /// Most sides of a die.
    pub const SIDES_MAX: u32 = 1000;

    /// Reads `4d20`, `d20` or `percent`.
    pub fn parse(raw: &str) -> Result<Self, DrawError> {
        if raw == "percent" {
            return Ok(Self::Percent);
        }
        let dice = raw.split_once(['d', 'D']).and_then(|(count, sides)| {
            let count = if count.is_empty() { 1 } else { count.parse().ok()? };
            Some((count, sides.parse().ok()?))
        });
        match dice {
            Some((count @ 1..=Self::DICE_MAX, sides @ 2..=Self::SIDES_MAX)) => Ok(Self::Dice { count, sides }),
            Some(_) | None => Err(DrawError(raw.to_owned())),
        }
    }

    /// Draws, and says the outcome as a reader sees it: `d20: 14, 3, 20, 7`, `percent: 37`, or what was picked.
    fn outcome(&self, numbers: &mut SplitMix64) -> String {
        match self {
            Self::Dice { count, sides } => {
                let faces: Vec<String> = (0..*count).map(|_| (numbers.below(u64::from(*sides)) + 1).to_string()).collect();
                format!("d{sides}: {}", faces.join(", "))
            }
            Self::Percent => format!("percent: {}", numbers.below(100) + 1),
            Self::Pick(options) => options[numbers.below(options.len() as u64) as usize].clone(),
        }
    }
}

/// Makes all draws of a turn, in their order: one seed serves them all.
pub fn outcomes(draws: &[Chance], seed: Seed) -> Vec<(Tag, String)> {
    let mut numbers = SplitMix64(seed.0);
    draws.iter().map(|chance| (chance.tag.clone(), chance.draw.outcome(&mut numbers))).collect()
}

struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `faces`, each as likely.
    fn below(&mut self, faces: u64) -> u64 {
        let last_fair = u64::MAX - (u64::MAX % faces + 1) % faces;
        loop {
            let number = self.next();
            if number <= last_fair {
                return number % faces;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_that_are_published() {
        let mut numbers = SplitMix64(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| numbers.next()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(first, published);
    }
}
