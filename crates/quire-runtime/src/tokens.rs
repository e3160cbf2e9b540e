//! Counts tokens as the o200k vocabulary does: exact for some models, near enough for the others.

use quire_core::context::TokenCount;

/// The vocabulary `o200k_base`.
#[derive(Debug, Clone, Copy, Default)]
pub struct O200k;

impl O200k {
    /// The name that stands in records.
    pub const NAME: &'static str = "o200k_base";
}

impl TokenCount for O200k {
    fn count(&self, text: &str) -> u32 {
        u32::try_from(bpe_openai::o200k_base().count(text)).unwrap_or(u32::MAX)
    }
}
