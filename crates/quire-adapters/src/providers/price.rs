//! What a reply costs, by the profile's own price table.

use std::sync::Arc;

use async_trait::async_trait;
use quire_core::message::{Reply, Usage};
use quire_runtime::ports::{Delta, ModelError, ModelProvider, ModelRequest};
use serde::{Deserialize, Serialize};

/// Prices of a million tokens each, in millionths of the table's currency; what is written to a cache counts as prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Of the prompt.
    pub input_micros: u64,
    /// Of the part of the prompt that was read from a cache.
    pub cached_micros: u64,
    /// Of the reply.
    pub output_micros: u64,
}

impl Price {
    /// Returns what this much costs, in millionths, rounded up.
    pub fn of(&self, usage: &Usage) -> u64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let parts = [
            (usage.input_tokens - cached, self.input_micros),
            (cached, self.cached_micros),
            (usage.output_tokens, self.output_micros),
        ];
        let millionths: u128 = parts.iter().map(|(tokens, micros)| u128::from(*tokens) * u128::from(*micros)).sum();
        u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

/// A provider whose replies carry what they cost.
pub struct Priced {
    provider: Arc<dyn ModelProvider>,
    price: Price,
}

impl Priced {
    /// Prices what a provider says it used.
    pub fn new(provider: Arc<dyn ModelProvider>, price: Price) -> Self {
        Self { provider, price }
    }
}

#[async_trait]
impl ModelProvider for Priced {
    async fn ask(&self, request: &ModelRequest, deltas: &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, ModelError> {
        let mut reply = self.provider.ask(request, deltas).await?;
        reply.usage.money_micros = self.price.of(&reply.usage);
        Ok(reply)
    }

    fn model(&self) -> &str {
        self.provider.model()
    }

    fn prompt_tokens_max(&self) -> u32 {
        self.provider.prompt_tokens_max()
    }
}

#[cfg(test)]
mod tests {
    use quire_core::message::Usage;

    use super::Price;

    #[test]
    fn cached_tokens_have_their_own_price_and_a_started_millionth_counts() {
        // 3, 0.30 and 15 of the currency for a million tokens.
        let price = Price { input_micros: 3_000_000, cached_micros: 300_000, output_micros: 15_000_000 };
        let usage =
            |input_tokens, cached_tokens, output_tokens| Usage { input_tokens, cached_tokens, output_tokens, money_micros: 0 };
        assert_eq!(price.of(&usage(1_000, 0, 100)), 3_000 + 1_500);
        assert_eq!(price.of(&usage(1_000, 900, 100)), 300 + 270 + 1_500);
        assert_eq!(price.of(&usage(0, 0, 0)), 0);
        assert_eq!(price.of(&usage(1, 1, 0)), 1);
        assert_eq!(Price::default().of(&usage(1_000, 0, 1_000)), 0);
    }
}
