//! Names of things in a description, other than channels; and which one was meant.

use crate::limits::NAME_OCTETS;

/// Whether a name may have this octet: letters, digits, `-` and `_`.
pub const fn is_plain(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'-')
}

/// Whether a text can be such a name. Nothing else is taken for one that a file of results claims
/// to have: it may become part of a path.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_OCTETS && text.bytes().all(is_plain)
}

/// The known word that is closest to `word`, if one is close enough to be meant.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let limit = 1 + word.len() / 4;
    known
        .filter(|k| k.len().abs_diff(word.len()) <= limit)
        .map(|k| (distance(word, k), k))
        .filter(|(d, _)| *d <= limit)
        .min()
        .map(|(_, k)| k)
}

/// How many octets must be inserted, deleted, replaced or swapped with their neighbour to make
/// one word of the other (restricted Damerau–Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1; b.len() + 1];
        for j in 0..b.len() {
            let change = above[j] + usize::from(a[i] != b[j]);
            row[j + 1] = change.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_word_is_suggested_and_a_far_one_is_not() {
        let known = ["talker", "listener", "cat1", "cat2"];
        for (word, meant) in [
            ("taker", Some("talker")),
            ("litsener", Some("listener")),
            ("cat3", Some("cat1")),
            ("sensor", None),
            ("", None),
        ] {
            assert_eq!(did_you_mean(word, known.into_iter()), meant, "{word}");
        }
    }
}
