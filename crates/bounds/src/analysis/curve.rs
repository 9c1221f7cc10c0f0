//! Upper bounds of traffic over windows of time.

use super::div_ceil;

/// A sum of more pieces than this is replaced by one above it: what is done with curves takes the
/// product of their numbers.
const PIECES_MAX: usize = 128;

/// At most `burst + rate · t` nanobits for windows of `t` ≥ `from` nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    from: i128,
    burst: i128,
    rate: i128,
}

/// How much traffic comes in any closed window of whole nanoseconds: piecewise affine, as a rule
/// concave. Each piece bounds by itself, so that where two meet may be rounded either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Curve(Vec<Piece>);

impl Curve {
    /// Nothing at all.
    pub(crate) fn zero() -> Self {
        Self::affine(0, 0)
    }

    /// A leaky bucket: `burst` nanobits at once, then `rate` nanobits per nanosecond (bit/s).
    pub(crate) fn affine(burst: i128, rate: i128) -> Self {
        Self(vec![Piece { from: 0, burst, rate }])
    }

    /// The most in a window of `t` nanoseconds.
    pub(crate) fn at(&self, t: i128) -> i128 {
        let piece = &self.0[self.0.partition_point(|p| p.from <= t) - 1];
        piece.burst + piece.rate * t
    }

    /// The rate in the long run.
    pub(crate) fn rate(&self) -> i128 {
        self.0[self.0.len() - 1].rate
    }

    /// The leaky bucket of the long run: its burst and its rate bound every window.
    pub(crate) fn bucket(&self) -> (i128, i128) {
        let last = self.0[self.0.len() - 1];
        (last.burst, last.rate)
    }

    /// All of them together.
    pub(crate) fn sum<'a>(curves: impl Iterator<Item = &'a Self>) -> Self {
        let mut steps: Vec<Piece> = Vec::new();
        for curve in curves {
            let mut before = Piece { from: 0, burst: 0, rate: 0 };
            for piece in &curve.0 {
                let (burst, rate) = (piece.burst - before.burst, piece.rate - before.rate);
                steps.push(Piece { from: piece.from, burst, rate });
                before = *piece;
            }
        }
        steps.sort_unstable_by_key(|step| step.from);
        let mut sum = Self::zero();
        for step in steps {
            let last = sum.0[sum.0.len() - 1];
            let (burst, rate) = (last.burst + step.burst, last.rate + step.rate);
            let piece = Piece { from: step.from, burst, rate };
            if last.from == step.from {
                sum.0.pop();
            }
            sum.0.push(piece);
        }
        sum.coarse()
    }

    /// One with fewer pieces that is never below: each piece bounds by itself.
    fn coarse(self) -> Self {
        let count = self.0.len();
        if count <= PIECES_MAX {
            return self;
        }
        let kept = (0..PIECES_MAX).map(|at| self.0[at * (count - 1) / (PIECES_MAX - 1)]);
        let first = Self::affine(self.0[0].burst, self.0[0].rate);
        kept.skip(1).fold(first, |curve, piece| curve.min_affine(piece.burst, piece.rate))
    }

    /// The smaller of this and a leaky bucket.
    pub(crate) fn min_affine(&self, burst: i128, rate: i128) -> Self {
        let other = Piece { from: 0, burst, rate };
        let mut least: Vec<Piece> = Vec::with_capacity(self.0.len() + 1);
        let mut add = |piece: Piece, from: i128| match least.last() {
            Some(last) if (last.burst, last.rate) == (piece.burst, piece.rate) => {}
            _ => least.push(Piece { from, ..piece }),
        };
        for (at, piece) in self.0.iter().enumerate() {
            let end = self.0.get(at + 1).map(|next| next.from);
            // By how much this one is above the other, at the start and per nanosecond.
            let above = piece.burst - other.burst + (piece.rate - other.rate) * piece.from;
            let slope = piece.rate - other.rate;
            let (first, second) = if above > 0 { (other, *piece) } else { (*piece, other) };
            add(first, piece.from);
            if above.signum() * slope.signum() < 0 {
                let cross = piece.from + div_ceil(above.abs(), slope.abs());
                if end.is_none_or(|end| cross < end) {
                    add(second, cross);
                }
            } else if above == 0 && slope > 0 {
                add(second, piece.from + 1);
            }
        }
        Self(least)
    }

    /// The windows at whose ends something changes: each piece's first and last, as far as it has
    /// a last one.
    pub(crate) fn corners(&self) -> impl Iterator<Item = i128> {
        let ends = self.0.iter().skip(1).map(|piece| piece.from - 1);
        self.0.iter().map(|piece| piece.from).chain(ends)
    }

    /// The last window with at most `amount`, if windows are ever too small for it and not all.
    pub(crate) fn last_within(&self, amount: i128) -> Option<i128> {
        let at = self.0.iter().rposition(|p| p.burst + p.rate * p.from <= amount)?;
        let piece = self.0[at];
        let end = self.0.get(at + 1).map(|next| next.from - 1);
        let within = (piece.rate > 0).then(|| (amount - piece.burst) / piece.rate);
        [end, within].into_iter().flatten().min()
    }

    /// The least `x` ≥ 0 at which `rate · (x − latency)` minus this curve is `amount` or more.
    /// None: never.
    pub(crate) fn overtaken(&self, rate: i128, latency: i128, amount: i128) -> Option<i128> {
        for (at, piece) in self.0.iter().enumerate() {
            let left = rate - piece.rate;
            let needed = amount + piece.burst + rate * latency;
            let next = self.0.get(at + 1);
            // Not in this piece: seen without dividing, as there may be many.
            if left > 0 && next.is_some_and(|next| needed > left * (next.from - 1)) {
                continue;
            }
            let x = match left {
                1.. => (div_ceil(needed.max(0), left)).max(piece.from),
                _ if left * piece.from >= needed => piece.from,
                _ => continue,
            };
            if next.is_none_or(|next| x < next.from) {
                return Some(x);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curve() -> impl Strategy<Value = Curve> {
        let bucket = (0i128..1_000, 0i128..50);
        proptest::collection::vec(bucket, 1..5).prop_map(|buckets| {
            let mut curve = Curve::affine(buckets[0].0, buckets[0].1);
            for (burst, rate) in &buckets[1..] {
                curve = curve.min_affine(*burst, *rate);
            }
            curve
        })
    }

    #[test]
    fn the_smaller_of_two_buckets_changes_where_they_cross() {
        // 10 + 5 t and 100 + 2 t cross at 30.
        let curve = Curve::affine(10, 5).min_affine(100, 2);
        assert_eq!([0, 1, 29, 30, 31].map(|t| curve.at(t)), [10, 15, 155, 160, 162]);
        assert_eq!(curve, Curve::affine(100, 2).min_affine(10, 5));
        assert_eq!(curve.corners().collect::<Vec<_>>(), [0, 30, 29]);
        assert_eq!(curve.last_within(9), None);
        assert_eq!(curve.last_within(161), Some(30));
        assert_eq!(curve.last_within(162), Some(31));
        // 7 (x − 3) − (10 + 5 x) ≥ 20 from x = 25.5 on; ≥ 40 from 35.5 on, but there 100 + 2 x is
        // less: 7 (x − 3) − 100 − 2 x ≥ 40 from 32.2 on.
        assert_eq!(curve.overtaken(7, 3, 20), Some(26));
        assert_eq!(curve.overtaken(7, 3, 40), Some(33));
        assert_eq!(curve.overtaken(2, 0, 0), None);
    }

    proptest! {
        #[test]
        fn a_sum_of_many_pieces_is_never_below_the_sum_and_is_it_at_the_ends(
            curves in proptest::collection::vec(curve(), 150..300),
            t in 0i128..200,
        ) {
            let sum = Curve::sum(curves.iter());
            prop_assert!(sum.0.len() <= PIECES_MAX + 1);
            let all = |of: &dyn Fn(&Curve) -> i128| curves.iter().map(of).sum::<i128>();
            let least = |c: &Curve| c.0.iter().map(|p| p.burst + p.rate * t).min().unwrap_or(0);
            prop_assert!(sum.at(t) >= all(&least));
            prop_assert_eq!(sum.at(0), all(&|curve| curve.at(0)));
            prop_assert_eq!(sum.at(1_000_000), all(&|curve| curve.at(1_000_000)));
        }

        #[test]
        fn sums_and_minima_are_those_of_the_values(a in curve(), b in curve(), t in 0i128..2_000) {
            prop_assert_eq!(Curve::sum([&a, &b].into_iter()).at(t), a.at(t) + b.at(t));
            let least = a.min_affine(300, 7).at(t);
            prop_assert_eq!(least, a.at(t).min(300 + 7 * t));
        }

        #[test]
        fn what_overtakes_does_so_at_once(a in curve(), rate in 0i128..60, latency in 0i128..50,
            amount in 0i128..2_000)
        {
            let holds = |x: i128| rate * (x - latency) - a.at(x) >= amount;
            match a.overtaken(rate, latency, amount) {
                Some(x) => {
                    prop_assert!(holds(x));
                    prop_assert!(x == 0 || !holds(x - 1));
                }
                None => prop_assert!((0..3_000).all(|x| !holds(x))),
            }
        }
    }
}
