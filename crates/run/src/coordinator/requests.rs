//! How often a program has asked for something at one instant.

use onbeat::coordinator::protocol::Request;

/// The most requests that a program may make at one instant without getting a message. More is a
/// program that waits for time to pass without letting it.
const MOST: u64 = 100_000;

/// The requests of a program at this instant that gave it nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Requests {
    asked: u64,
    /// How often the library had no room for more. How often it has depends on how fast the
    /// machine is, but never twice without another request.
    yielded: u64,
}

impl Requests {
    /// Counts one; whether it is still within reason.
    pub(super) fn count(&mut self, request: &Request<'_>) -> bool {
        match request {
            Request::Yield => self.yielded += 1,
            _ => self.asked += 1,
        }
        self.asked <= MOST && self.yielded <= self.asked + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_needs_does_not_count() {
        let mut requests = Requests::default();
        for _ in 0..MOST {
            assert!(requests.count(&Request::Unpark(1)) && requests.count(&Request::Yield));
        }
        assert!(!requests.count(&Request::Unpark(1)));
    }

    #[test]
    fn nothing_but_yields_is_endless() {
        let mut requests = Requests::default();
        assert!(requests.count(&Request::Yield) && !requests.count(&Request::Yield));
    }
}
