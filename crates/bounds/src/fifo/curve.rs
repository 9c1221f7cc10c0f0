//! Arrival curves: how much may come in any time window.

use super::AMOUNT_MAX;
use onbeat_model::time::Span;
use onbeat_model::units::BitRate;
use std::cmp::Ordering;

/// A token bucket: in any closed window of length *t* at most `burst + rate·t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// The most at once, in nanobits (10⁻⁹ bit: bits per second times nanoseconds).
    pub burst: i128,
    /// The sustained rate.
    pub rate: BitRate,
}

impl Bucket {
    pub(crate) fn bps(self) -> i128 {
        i128::from(self.rate.as_bps())
    }

    /// The same traffic after delays that differ by up to `jitter`.
    pub(crate) fn delayed(self, jitter: Span) -> Self {
        Self { burst: self.burst + self.bps() * i128::from(jitter.as_ns()), rate: self.rate }
    }
}

/// A concave arrival curve: the minimum of token buckets.
///
/// Kept in order, each bucket with a smaller rate and a greater burst than the one before it, and
/// each the smallest somewhere: all operations are exact.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Curve(Vec<Bucket>);

/// The window at which one bucket gives way to the next: a quotient of integers.
#[derive(Clone, Copy)]
struct Crossing {
    burst: i128,
    rate: i128,
}

impl Crossing {
    /// Where `later` becomes smaller than `earlier`, which has the greater rate.
    fn between(earlier: Bucket, later: Bucket) -> Self {
        Self { burst: later.burst - earlier.burst, rate: earlier.bps() - later.bps() }
    }

    /// Compares the quotients digit by digit of their continued fractions: nothing overflows.
    fn order(self, other: Self) -> Ordering {
        let (mut a, mut b, mut c, mut d) = (self.burst, self.rate, other.burst, other.rate);
        loop {
            let whole = a.div_euclid(b).cmp(&c.div_euclid(d));
            let (left, right) = (a.rem_euclid(b), c.rem_euclid(d));
            if whole != Ordering::Equal || left == 0 || right == 0 {
                return whole.then(left.signum().cmp(&right.signum()));
            }
            (a, b, c, d) = (d, right, b, left);
        }
    }
}

impl Curve {
    /// The minimum of `buckets`.
    ///
    /// # Panics
    /// When there is none.
    pub fn new(mut buckets: Vec<Bucket>) -> Self {
        assert!(!buckets.is_empty(), "an arrival curve needs a bucket");
        buckets.sort_by_key(|b| (b.burst, b.rate));
        let mut hull: Vec<Bucket> = Vec::with_capacity(buckets.len());
        for bucket in buckets {
            if hull.last().is_some_and(|last| last.rate <= bucket.rate) {
                continue;
            }
            while let [.., before, last] = hull[..] {
                let into = Crossing::between(before, last);
                if Crossing::between(last, bucket).order(into) == Ordering::Greater {
                    break;
                }
                hull.pop();
            }
            hull.push(bucket);
        }
        Self(hull)
    }

    /// One token bucket.
    pub fn bucket(burst: i128, rate: BitRate) -> Self {
        Self(vec![Bucket { burst, rate }])
    }

    /// The buckets, by falling rate.
    pub fn buckets(&self) -> &[Bucket] {
        &self.0
    }

    /// The bucket with the sustained rate: the last one.
    pub fn sustained(&self) -> Bucket {
        self.0[self.0.len() - 1]
    }

    /// The most at once, in nanobits.
    pub fn burst(&self) -> i128 {
        self.0[0].burst
    }

    /// The most in a closed window of length `window`, in nanobits.
    pub fn within(&self, window: Span) -> i128 {
        let ns = i128::from(window.as_ns());
        self.0.iter().map(|b| b.burst + b.bps() * ns).min().expect("a bucket")
    }

    /// The same traffic after delays that differ by up to `jitter`; none if that is too much to
    /// count.
    pub(crate) fn delayed(&self, jitter: Span) -> Option<Self> {
        let all = self.0.iter().map(|b| b.delayed(jitter));
        let buckets: Vec<_> = all.filter(|b| b.burst <= AMOUNT_MAX).collect();
        (!buckets.is_empty()).then(|| Self::new(buckets))
    }

    /// The curve of both limits together.
    pub(crate) fn and(mut self, bucket: Bucket) -> Self {
        self.0.push(bucket);
        Self::new(self.0)
    }

    /// The traffic of all `curves` together, which must be one at least.
    pub(crate) fn sum<'a>(curves: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut burst = 0;
        let mut rate = 0;
        let mut turns = Vec::new();
        for curve in curves {
            burst += curve.0[0].burst;
            rate += curve.0[0].rate.as_bps();
            turns.extend(curve.0.windows(2).map(|pair| Crossing::between(pair[0], pair[1])));
        }
        turns.sort_by(|a, b| a.order(*b));
        let mut buckets = vec![Bucket { burst, rate: BitRate::from_bps(rate) }];
        for turn in turns {
            burst += turn.burst;
            rate -= u64::try_from(turn.rate).expect("a difference of rates");
            buckets.push(Bucket { burst, rate: BitRate::from_bps(rate) });
        }
        Self::new(buckets)
    }

    /// The most by which the traffic of any window exceeds what `rate` carries away in it, in
    /// nanobits rounded up; none if it grows without end.
    pub(crate) fn excess(&self, rate: BitRate) -> Option<i128> {
        Some(self.worst(rate)?.0)
    }

    /// [`Curve::excess`], and the window at which it is attained, rounded up.
    fn worst(&self, rate: BitRate) -> Option<(i128, i128)> {
        if self.sustained().rate > rate {
            return None;
        }
        let at = self.0.iter().position(|b| b.rate <= rate).expect("the last one");
        let Some(before) = at.checked_sub(1).map(|i| self.0[i]) else {
            return Some((self.0[0].burst, 0));
        };
        let turn = Crossing::between(before, self.0[at]);
        let surplus = before.bps() - i128::from(rate.as_bps());
        let window = ceil(turn.burst, turn.rate);
        let rise = turn.burst.checked_mul(surplus).map(|bits| ceil(bits, turn.rate));
        Some((before.burst + rise.or_else(|| window.checked_mul(surplus))?, window))
    }

    /// The most that waits in a server of `rate` after `latency`, in nanobits rounded up.
    pub(crate) fn backlog(&self, rate: BitRate, latency: Span) -> Option<i128> {
        let (excess, at) = self.worst(rate)?;
        let late = i128::from(latency.as_ns());
        let during = i128::from(rate.as_bps()).checked_mul(late)?;
        Some(if at <= late { self.within(latency) } else { excess.checked_add(during)? })
    }
}

/// Quotient rounded up, for a positive divisor.
pub(crate) fn ceil(a: i128, b: i128) -> i128 {
    a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0)
}
