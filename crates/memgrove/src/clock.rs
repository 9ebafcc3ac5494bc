//! What time it is: handed in from outside, so that tests and simulations own it.

use std::sync::atomic::{AtomicI64, Ordering};

pub use jiff::Timestamp;
pub use jiff::tz::TimeZone;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The machine's clock, for programs to hand in.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[allow(clippy::disallowed_methods)] // The one place that reads the machine's clock.
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that moves one millisecond each time it is read, and otherwise only when told to.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn new(start: Timestamp) -> Self {
        ManualClock(AtomicI64::new(start.as_millisecond()))
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Default for ManualClock {
    /// A clock that stands at the start of 2026.
    fn default() -> Self {
        ManualClock(AtomicI64::new(1_767_225_600_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let ms = self.0.fetch_add(1, Ordering::SeqCst);
        Timestamp::from_millisecond(ms).expect("a manual clock stays within the calendar")
    }
}
