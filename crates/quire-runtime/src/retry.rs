//! When a failed attempt is made again. The only retry there is: adapters make none.

use std::time::Duration;

/// How often, and how long to wait between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all.
    pub attempts_max: u32,
    /// The pause after the first; each further one is twice as long.
    pub pause: Duration,
    /// The longest pause, also where the provider asks for more.
    pub pause_max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts_max: 4, pause: Duration::from_secs(1), pause_max: Duration::from_secs(60) }
    }
}

impl RetryPolicy {
    /// Returns how long to wait before the attempt after `attempt` (from 1); none: it was the last.
    ///
    /// The provider's own wish counts where it is longer. `salt` spreads clients that failed together over half a pause.
    pub fn pause_after(&self, attempt: u32, asked_for: Option<Duration>, salt: u64) -> Option<Duration> {
        if attempt >= self.attempts_max {
            return None;
        }
        let doubled = self.pause.saturating_mul(1 << (attempt - 1).min(16));
        let spread = doubled / 2 * u32::try_from(salt % 1000).unwrap_or_default() / 1000;
        Some((doubled + spread).max(asked_for.unwrap_or_default()).min(self.pause_max))
    }
}
