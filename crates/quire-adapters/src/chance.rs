//! Seeds from the operating system, by way of the random bits of a UUID.

use quire_core::chance::Seed;
use quire_runtime::ports::Chance;
use uuid::Uuid;

/// Gives seeds from the operating system's source of randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsChance;

impl Chance for OsChance {
    fn seed(&self) -> Seed {
        // Six of the 128 bits are fixed, none of them at the same place in both halves: together no bit is.
        let (high, low) = Uuid::new_v4().as_u64_pair();
        Seed(high ^ low)
    }
}
