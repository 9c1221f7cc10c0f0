//! Keys of a terminal, as the octets that it sends: those of a sequence may come one by one.

use super::view::Wanted;

/// No sequence of a key is longer.
const SEQUENCE_MAX: usize = 16;
const ESCAPE: u8 = 0x1b;
/// Ctrl-C and Ctrl-D, which are no signals in raw mode.
const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;

/// Octets that are no whole key yet.
#[derive(Debug, Default)]
pub(super) struct Keys(Vec<u8>);

impl Keys {
    /// What the keys ask for that are complete with these octets. Other keys ask for nothing.
    pub(super) fn pressed(&mut self, octets: &[u8]) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        for octet in octets {
            self.0.push(*octet);
            match self.0.as_slice() {
                [ESCAPE] | [ESCAPE, b'[' | b'O'] => continue,
                // An escape alone is a key, too.
                [ESCAPE, ESCAPE] => {
                    self.0.pop();
                    continue;
                }
                [ESCAPE, b'[' | b'O', .., b'@'..=b'~'] => wanted.extend(of_sequence(&self.0)),
                [ESCAPE, b'[' | b'O', ..] if self.0.len() < SEQUENCE_MAX => continue,
                [ESCAPE, b'[' | b'O', ..] => {}
                _ => wanted.extend(of_octet(*octet)),
            }
            self.0.clear();
        }
        wanted
    }
}

fn of_octet(octet: u8) -> Option<Wanted> {
    Some(match octet {
        b'q' | b'Q' | INTERRUPT | END_OF_INPUT => Wanted::Quit,
        b's' => Wanted::NextOrder,
        b' ' => Wanted::Pause,
        b'r' => Wanted::Reset,
        _ => return None,
    })
}

/// Keys of ECMA-48 terminals, as xterm and the kernel's console send them.
fn of_sequence(sequence: &[u8]) -> Option<Wanted> {
    Some(match sequence.get(2..)? {
        b"A" => Wanted::Up,
        b"B" => Wanted::Down,
        b"5~" => Wanted::PageUp,
        b"6~" => Wanted::PageDown,
        b"H" | b"1~" | b"7~" => Wanted::Home,
        b"F" | b"4~" | b"8~" => Wanted::End,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Wanted::*;

    #[test]
    fn keys_are_the_same_whole_and_in_pieces() {
        let octets = b"s \x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[1~\x1b[F\x1b[1;5C\xc3\xa4xr\x1bq\x03";
        let expected = [NextOrder, Pause, Up, Down, PageUp, PageDown, Home, End, Reset, Quit, Quit];
        assert_eq!(Keys::default().pressed(octets), expected);
        let mut keys = Keys::default();
        let pieces: Vec<_> = octets.iter().flat_map(|octet| keys.pressed(&[*octet])).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn a_sequence_without_an_end_does_not_take_all_further_keys() {
        let mut keys = Keys::default();
        let endless = [b"\x1b[".as_slice(), &[b'1'; SEQUENCE_MAX]].concat();
        assert_eq!(keys.pressed(&endless), []);
        assert_eq!(keys.pressed(b"\x1b\x1b\x1b[Bq"), [Down, Quit]);
    }
}
