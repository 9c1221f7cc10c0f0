//! A program as a file: what an assembler hands to a station.
//!
//! ```text
//! 8  magic             89 4e 43 42 0d 0a 1a 0a
//! 2  version           1
//! 1  medium            0: 1 Gbit/s, 1: 100 Mbit/s, 2: 10 Mbit/s
//! 1  tagged            0 or 1
//! 1  length, station   its name
//! 2  length, source    the name of the text that it was assembled from, or nothing
//! 2  count             of buffers, each: 1 role (0 output, 1 input), 2 words, 1 length, name
//! 2  count             of messages, each: 1 identifier, 2 words, 1 length, name
//! 2  count             of instructions, each: 8 word
//! 2  count             of lines, that of instructions or 0, each: 4 line
//! 4  CRC-32            of all octets before (IEEE 802.3, reflected)
//! ```
//!
//! All numbers have their most significant octet first. A program has one image and an image at
//! most one program: nothing is left open, and nothing follows.

use super::check::{ProgramError, SOURCE_OCTETS};
use super::instruction::{MessageId, PROGRAM_WORDS};
use super::program::{BUFFERS, Buffer, BufferRole, MessageFormat, StationProgram};
use super::timing::Medium;
use onbeat_model::limits::NAME_OCTETS;
use std::fmt;

/// The first octets. Transfers as text spoil them.
pub const MAGIC: [u8; 8] = [0x89, b'N', b'C', b'B', b'\r', b'\n', 0x1a, b'\n'];
/// The version that is written and read.
pub const VERSION: u16 = 1;

/// What a buffer or message has beside its name.
const ROW_OCTETS: usize = 4;
/// Messages: as many as there are identifiers.
const MESSAGES: usize = 256;

/// Octets of an image at most.
pub const IMAGE_OCTETS: usize = MAGIC.len()
    + (2 + 1 + 1)
    + (1 + NAME_OCTETS)
    + (2 + SOURCE_OCTETS)
    + (2 + BUFFERS * (ROW_OCTETS + NAME_OCTETS))
    + (2 + MESSAGES * (ROW_OCTETS + NAME_OCTETS))
    + (2 + PROGRAM_WORDS * 8)
    + (2 + PROGRAM_WORDS * 4)
    + 4;

const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// Cycles of an octet, by the code of the medium.
const OCTET_CYCLES: [u32; 3] = [1, 10, 100];

/// Why octets are no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// They begin otherwise.
    Magic,
    /// They are of another version.
    Version(u16),
    /// They end too early, or are more than any image has.
    Length,
    /// The checksum is another one.
    Checksum,
    /// Octets follow the lines.
    Trailing,
    /// No medium, tag or role has this code.
    Code(u8),
    /// A name is not UTF-8.
    Text,
    /// The program cannot be loaded.
    Program(ProgramError),
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("this is no image of a program in Network Code"),
            Self::Version(version) => write!(f, "the image is of version {version}, not {VERSION}"),
            Self::Length => f.write_str("the image is cut off, or too long"),
            Self::Checksum => f.write_str("the image is damaged: its checksum is another one"),
            Self::Trailing => f.write_str("octets follow the image's lines"),
            Self::Code(code) => write!(f, "no medium, tag or role has code {code}"),
            Self::Text => f.write_str("a name in the image is not UTF-8"),
            Self::Program(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImageError {}

impl From<ProgramError> for ImageError {
    fn from(error: ProgramError) -> Self {
        Self::Program(error)
    }
}

/// The image of a program.
///
/// # Errors
/// When no station can load it.
pub fn emit(program: &StationProgram) -> Result<Vec<u8>, ProgramError> {
    program.check()?;
    let code = OCTET_CYCLES.iter().position(|cycles| *cycles == program.medium.octet_cycles);
    let mut octets = MAGIC.to_vec();
    octets.extend(VERSION.to_be_bytes());
    octets.extend([code.unwrap_or_default() as u8, u8::from(program.medium.tagged)]);
    // What was checked has lengths and counts that fit.
    let name = |octets: &mut Vec<u8>, name: &str| {
        octets.push(name.len() as u8);
        octets.extend(name.as_bytes());
    };
    let count = |octets: &mut Vec<u8>, count: usize| octets.extend((count as u16).to_be_bytes());
    name(&mut octets, &program.station);
    count(&mut octets, program.source.len());
    octets.extend(program.source.as_bytes());
    count(&mut octets, program.buffers.len());
    for buffer in &program.buffers {
        octets.push(match buffer.role {
            BufferRole::Output => OUTPUT,
            BufferRole::Input => INPUT,
        });
        octets.extend(buffer.words.to_be_bytes());
        name(&mut octets, &buffer.name);
    }
    count(&mut octets, program.messages.len());
    for message in &program.messages {
        octets.push(message.id.0);
        octets.extend(message.words.to_be_bytes());
        name(&mut octets, &message.name);
    }
    count(&mut octets, program.words.len());
    octets.extend(program.words.iter().flat_map(|word| word.to_be_bytes()));
    count(&mut octets, program.lines.len());
    octets.extend(program.lines.iter().flat_map(|line| line.to_be_bytes()));
    octets.extend(CRC.checksum(&octets).to_be_bytes());
    Ok(octets)
}

const OUTPUT: u8 = 0;
const INPUT: u8 = 1;

/// The program of an image.
///
/// # Errors
/// When it is none, is damaged, or no station can load it.
pub fn parse(octets: &[u8]) -> Result<StationProgram, ImageError> {
    if !octets.starts_with(&MAGIC) {
        return Err(ImageError::Magic);
    }
    if octets.len() > IMAGE_OCTETS {
        return Err(ImageError::Length);
    }
    let mut reader = ImageReader { octets: &octets[MAGIC.len()..] };
    // The version first: what follows it may be another one's.
    let version = u16::from_be_bytes(reader.take()?);
    if version != VERSION {
        return Err(ImageError::Version(version));
    }
    let Some((before, checksum)) = octets.split_last_chunk() else {
        return Err(ImageError::Length);
    };
    if CRC.checksum(before).to_be_bytes() != *checksum {
        return Err(ImageError::Checksum);
    }
    reader.octets = reader.octets.split_last_chunk::<4>().ok_or(ImageError::Length)?.0;
    let program = reader.program()?;
    if !reader.octets.is_empty() {
        return Err(ImageError::Trailing);
    }
    program.check()?;
    Ok(program)
}

/// What is not read yet.
struct ImageReader<'o> {
    octets: &'o [u8],
}

impl<'o> ImageReader<'o> {
    fn program(&mut self) -> Result<StationProgram, ImageError> {
        let code = self.octet()?;
        let octet_cycles = *OCTET_CYCLES.get(usize::from(code)).ok_or(ImageError::Code(code))?;
        let tagged = self.flag()?;
        let station = self.name()?;
        let source = self.count()?;
        let source = text(self.several(source)?)?;
        Ok(StationProgram {
            station,
            medium: Medium { octet_cycles, tagged },
            source,
            buffers: self.rows(Self::buffer)?,
            messages: self.rows(Self::message)?,
            words: self.rows(|reader| Ok(u64::from_be_bytes(reader.take()?)))?,
            lines: self.rows(|reader| Ok(u32::from_be_bytes(reader.take()?)))?,
        })
    }

    /// As many of something as a count says. There are no more than octets.
    fn rows<T>(
        &mut self,
        mut row: impl FnMut(&mut Self) -> Result<T, ImageError>,
    ) -> Result<Vec<T>, ImageError> {
        let count = self.count()?;
        (0..count).map(|_| row(self)).collect()
    }

    fn buffer(&mut self) -> Result<Buffer, ImageError> {
        let role = if self.flag()? { BufferRole::Input } else { BufferRole::Output };
        let words = u16::from_be_bytes(self.take()?);
        Ok(Buffer { name: self.name()?, words, role })
    }

    fn message(&mut self) -> Result<MessageFormat, ImageError> {
        let id = MessageId(self.octet()?);
        let words = u16::from_be_bytes(self.take()?);
        Ok(MessageFormat { id, name: self.name()?, words })
    }

    fn flag(&mut self) -> Result<bool, ImageError> {
        match self.octet()? {
            OUTPUT => Ok(false),
            INPUT => Ok(true),
            code => Err(ImageError::Code(code)),
        }
    }

    fn name(&mut self) -> Result<String, ImageError> {
        let length = self.octet()?;
        text(self.several(usize::from(length))?)
    }

    fn count(&mut self) -> Result<usize, ImageError> {
        self.take().map(|octets| usize::from(u16::from_be_bytes(octets)))
    }

    fn octet(&mut self) -> Result<u8, ImageError> {
        self.take().map(|[octet]: [u8; 1]| octet)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], ImageError> {
        let (first, rest) = self.octets.split_first_chunk().ok_or(ImageError::Length)?;
        self.octets = rest;
        Ok(*first)
    }

    fn several(&mut self, count: usize) -> Result<&'o [u8], ImageError> {
        let (first, rest) = self.octets.split_at_checked(count).ok_or(ImageError::Length)?;
        self.octets = rest;
        Ok(first)
    }
}

fn text(octets: &[u8]) -> Result<String, ImageError> {
    std::str::from_utf8(octets).map(str::to_owned).map_err(|_| ImageError::Text)
}

#[cfg(test)]
mod tests {
    use super::super::check::InstructionError;
    use super::super::instruction::{BufferId, Instruction, WordError};
    use super::*;

    /// A program of two instructions.
    fn small() -> StationProgram {
        let instructions = [
            Instruction::Receive { message: MessageId(7), buffer: BufferId(1) },
            Instruction::Create { buffer: BufferId(0) },
        ];
        let buffer = |name: &str, words, role| Buffer { name: name.to_owned(), words, role };
        StationProgram {
            station: "a-1".to_owned(),
            medium: Medium { octet_cycles: 10, tagged: true },
            buffers: vec![
                buffer("out", 2, BufferRole::Output),
                buffer("b", 0x101, BufferRole::Input),
            ],
            messages: vec![MessageFormat { id: MessageId(7), name: "m".to_owned(), words: 0x101 }],
            words: instructions.map(Instruction::encode).to_vec(),
            source: "x.nc".to_owned(),
            lines: vec![3, 0x1_0203],
        }
    }

    /// The same octets with their checksum.
    fn sealed(mut octets: Vec<u8>) -> Vec<u8> {
        octets.truncate(octets.len() - 4);
        octets.extend(CRC.checksum(&octets).to_be_bytes());
        octets
    }

    #[test]
    fn an_image_has_the_octets_of_its_definition() {
        let mut expected = b"\x89NCB\r\n\x1a\n\0\x01\x01\x01".to_vec();
        expected.extend(b"\x03a-1\0\x04x.nc");
        expected.extend(b"\0\x02\0\0\x02\x03out\x01\x01\x01\x01b");
        expected.extend(b"\0\x01\x07\x01\x01\x01m");
        expected.extend(b"\0\x02\x0c\0\x01\xc0\0\0\0\x01\x04\0\0\0\0\0\0\0");
        expected.extend(b"\0\x02\0\0\0\x03\0\x01\x02\x03");
        let octets = emit(&small()).expect("it is right");
        let (before, checksum) = octets.split_last_chunk::<4>().expect("a checksum");
        assert_eq!(before, expected);
        assert_eq!(u32::from_be_bytes(*checksum), crc_bit_by_bit(before));
        assert_eq!(parse(&octets), Ok(small()));
    }

    /// IEEE 802.3's checksum by its definition.
    fn crc_bit_by_bit(octets: &[u8]) -> u32 {
        let mut rest = u32::MAX;
        for bit in octets.iter().flat_map(|octet| (0..8).map(move |at| octet >> at & 1)) {
            let divides = rest & 1 != u32::from(bit);
            rest = rest >> 1 ^ if divides { 0xedb8_8320 } else { 0 };
        }
        !rest
    }

    #[test]
    fn every_changed_octet_and_every_cut_is_an_error() {
        let octets = emit(&small()).expect("it is right");
        for at in 0..octets.len() {
            for bit in 0..8 {
                let mut changed = octets.clone();
                changed[at] ^= 1 << bit;
                assert!(parse(&changed).is_err(), "octet {at}, bit {bit}");
            }
            let mut cut = octets[..at].to_vec();
            assert!(parse(&cut).is_err(), "{at} octets");
            if cut.len() > 16 {
                cut = sealed(cut);
                assert!(parse(&cut).is_err(), "{at} octets with their checksum");
            }
        }
        let mut more = octets.clone();
        more.splice(octets.len() - 4..octets.len() - 4, [0]);
        assert_eq!(parse(&sealed(more)), Err(ImageError::Trailing));
        let large = [&octets[..], &vec![0; IMAGE_OCTETS]].concat();
        assert_eq!(parse(&large), Err(ImageError::Length));
        let mut later = octets;
        later[9] = 2;
        assert_eq!(parse(&later), Err(ImageError::Version(2)), "whatever its checksum is");
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        let octets = emit(&small()).expect("it is right");
        let changed = |at: usize, octet: u8| {
            let mut changed = octets.clone();
            changed[at] = octet;
            parse(&sealed(changed))
        };
        assert_eq!(changed(10, 3), Err(ImageError::Code(3)), "the medium");
        assert_eq!(changed(11, 2), Err(ImageError::Code(2)), "the tag");
        assert_eq!(changed(24, 9), Err(ImageError::Code(9)), "a role");
        assert_eq!(changed(18, 0xff), Err(ImageError::Text), "the source");
        assert_eq!(changed(18, b'\n'), Err(ImageError::Program(ProgramError::Source)));
        let word = octets.len() - 4 - 10 - 16;
        let wrong = ProgramError::Instruction(0, InstructionError::Word(WordError::Operation(63)));
        assert_eq!(changed(word, 0xff), Err(ImageError::Program(wrong)));
    }
}
