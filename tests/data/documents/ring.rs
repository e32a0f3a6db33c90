//! A ring buffer for samples that arrive faster than they are read.
//!
//! The buffer never grows. When it is full, the oldest sample is overwritten, and the reader is
//! told how many samples it has missed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The smallest capacity that makes sense.
///
/// A buffer of one sample would have to be emptied before every write.
pub const MIN_CAPACITY: usize = 2;

/// What went wrong while reading.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadError {
    /// The writer has been dropped and the buffer is empty.
    Closed,
    /// The reader was too slow; this many samples were overwritten.
    Lagged(u64),
    /// No sample arrived in time.
    TimedOut,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Closed => write!(f, "the writer is gone"),
            ReadError::Lagged(count) => write!(f, "{count} samples were lost"),
            ReadError::TimedOut => write!(f, "no sample arrived in time"),
        }
    }
}

impl std::error::Error for ReadError {}

/// The state that both ends share.
struct Shared<T> {
    slots: Mutex<Vec<Option<T>>>,
    arrived: Condvar,
    /// How many samples have ever been written.
    written: AtomicU64,
    closed: AtomicU64,
}

/// The end that writes. There is only one.
#[must_use = "dropping the writer closes the buffer"]
pub struct Writer<T> {
    shared: Arc<Shared<T>>,
}

/// The end that reads.
///
/// Readers can be cloned. Each of them sees every sample, unless it lags behind.
pub struct Reader<T> {
    shared: Arc<Shared<T>>,
    next: u64,
}

/// Creates a buffer for `capacity` samples.
///
/// # Panics
///
/// Panics if `capacity` is less than [`MIN_CAPACITY`].
///
/// # Examples
///
/// ```
/// let (mut writer, mut reader) = ring::channel(4);
/// writer.write(17);
/// assert_eq!(reader.read(), Ok(17));
/// ```
pub fn channel<T: Clone>(capacity: usize) -> (Writer<T>, Reader<T>) {
    assert!(capacity >= MIN_CAPACITY, "capacity must be at least {MIN_CAPACITY}");
    let shared = Arc::new(Shared {
        slots: Mutex::new(vec![None; capacity]),
        arrived: Condvar::new(),
        written: AtomicU64::new(0),
        closed: AtomicU64::new(0),
    });
    let reader = Reader { shared: Arc::clone(&shared), next: 0 };
    (Writer { shared }, reader)
}

impl<T: Clone> Writer<T> {
    /// Stores a sample and wakes the readers that wait for one.
    pub fn write(&mut self, sample: T) {
        let mut slots = self.shared.slots.lock().expect("a reader panicked");
        let number = self.shared.written.load(Ordering::Relaxed);
        let index = (number % slots.len() as u64) as usize;
        slots[index] = Some(sample);
        self.shared.written.store(number + 1, Ordering::Release);
        drop(slots);
        self.shared.arrived.notify_all();
    }

    /// The number of samples written so far.
    #[inline]
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Acquire)
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        self.shared.closed.store(1, Ordering::Release);
        self.shared.arrived.notify_all();
    }
}

impl<T: Clone> Reader<T> {
    /// Waits for the next sample.
    pub fn read(&mut self) -> Result<T, ReadError> {
        self.read_timeout(Duration::from_secs(u64::MAX / 4))
    }

    /// Waits for the next sample, but not longer than `patience`.
    ///
    /// After [`ReadError::Lagged`] the reader continues with the oldest sample that still exists.
    // The loop is needed because a condition variable may wake up for no reason.
    pub fn read_timeout(&mut self, patience: Duration) -> Result<T, ReadError> {
        let mut slots = self.shared.slots.lock().expect("the writer panicked");
        loop {
            let written = self.shared.written.load(Ordering::Acquire);
            let oldest = written.saturating_sub(slots.len() as u64);
            if self.next < oldest {
                let missed = oldest - self.next;
                self.next = oldest;
                return Err(ReadError::Lagged(missed));
            }
            if self.next < written {
                let index = (self.next % slots.len() as u64) as usize;
                self.next += 1;
                return Ok(slots[index].clone().expect("a written slot is full"));
            }
            if self.shared.closed.load(Ordering::Acquire) == 1 {
                return Err(ReadError::Closed);
            }
            let (guard, waited) = self
                .shared
                .arrived
                .wait_timeout(slots, patience)
                .expect("the writer panicked");
            slots = guard;
            if waited.timed_out() {
                return Err(ReadError::TimedOut);
            }
        }
    }
}

impl<T> Clone for Reader<T> {
    /// A clone starts where the original stands.
    fn clone(&self) -> Self {
        Reader { shared: Arc::clone(&self.shared), next: self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_arrive_in_order() {
        let (mut writer, mut reader) = channel(4);
        for sample in 0..4 {
            writer.write(sample);
        }
        for sample in 0..4 {
            assert_eq!(reader.read(), Ok(sample));
        }
    }

    #[test]
    fn a_slow_reader_is_told_what_it_missed() {
        let (mut writer, mut reader) = channel(2);
        for sample in 0..5 {
            writer.write(sample);
        }
        assert_eq!(reader.read(), Err(ReadError::Lagged(3)));
        assert_eq!(reader.read(), Ok(3));
    }
}
