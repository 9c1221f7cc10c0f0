//! What programs and libraries in the Executable and Linkable Format say of themselves: which
//! functions they have from others, and which of their own an address is in.

use crate::input;
use anyhow::bail;
use std::path::Path;

/// The functions that an executable or a shared library needs, in the order of its table: of its
/// dynamic symbols those that it does not define. Whatever a library locks or allocates, the
/// program asks for by one of them.
pub(crate) fn functions(path: &Path) -> anyhow::Result<Vec<String>> {
    let octets = input::read(path, input::PROGRAM_OCTETS).map_err(anyhow::Error::msg)?;
    match Elf::read(&octets).and_then(|elf| elf.undefined()) {
        Some(found) => Ok(found),
        None => bail!("the linker has made no file in ELF with dynamic symbols"),
    }
}

const ELF: &[u8] = b"\x7fELF";
/// Of a section that has all symbols, and of one that has the dynamic ones.
const SYMTAB: u64 = 2;
const DYNSYM: u64 = 11;
/// Of what is loaded of a file.
const LOAD: u64 = 1;
/// Types of symbols: functions, and those of which there are several for different processors.
const FUNCTIONS: [u8; 2] = [2, 10];

/// A file in the Executable and Linkable Format, of either size and either order of octets.
pub(crate) struct Elf<'f> {
    octets: &'f [u8],
    is_wide: bool,
    is_little: bool,
}

impl<'f> Elf<'f> {
    /// Octets of a file, if it is one.
    pub(crate) fn read(octets: &'f [u8]) -> Option<Self> {
        let class = *octets.get(4).filter(|_| octets.starts_with(ELF))?;
        Some(Self { octets, is_wide: class == 2, is_little: *octets.get(5)? == 1 })
    }

    /// The number of so many octets at a place.
    fn number(&self, at: u64, octets: usize) -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let octets = self.octets.get(at..at.checked_add(octets)?)?;
        let join = |number: u64, octet: &u8| number << 8 | u64::from(*octet);
        Some(match self.is_little {
            true => octets.iter().rev().fold(0, join),
            false => octets.iter().fold(0, join),
        })
    }

    /// A field that stands at another place in files for 64 bits than in those for 32.
    fn field(&self, base: u64, wide: (u64, usize), narrow: (u64, usize)) -> Option<u64> {
        let (at, octets) = if self.is_wide { wide } else { narrow };
        self.number(base.checked_add(at)?, octets)
    }

    /// Where a section begins in the file, and how long it is.
    fn extent(&self, section: u64) -> Option<(u64, u64)> {
        let begin = self.field(section, (0x18, 8), (0x10, 4))?;
        Some((begin, self.field(section, (0x20, 8), (0x14, 4))?))
    }

    /// Where the symbols are in the first section of this type, and where their names begin.
    fn symbols(&self, of: u64) -> Option<(impl Iterator<Item = u64>, u64)> {
        let table = self.field(0, (0x28, 8), (0x20, 4))?;
        let size = self.field(0, (0x3a, 2), (0x2e, 2))?;
        let count = self.field(0, (0x3c, 2), (0x30, 2))?;
        let section = |index: u64| index.checked_mul(size)?.checked_add(table);
        let mut all = (0..count).filter_map(section);
        let symbols = all.find(|at| self.number(at + 4, 4) == Some(of))?;
        let names = section(self.field(symbols, (0x28, 4), (0x18, 4))?)?;
        let (symbols, length) = self.extent(symbols)?;
        let (names, _) = self.extent(names)?;
        let step = if self.is_wide { 24 } else { 16 };
        Some(((0..length / step).map(move |index| symbols.saturating_add(index * step)), names))
    }

    fn undefined(&self) -> Option<Vec<String>> {
        let (places, names) = self.symbols(DYNSYM)?;
        Some(places.filter_map(|at| self.name_if_undefined(at, names)).collect())
    }

    /// The address in the file of what is so far behind its beginning in memory.
    pub(crate) fn address(&self, offset: u64) -> Option<u64> {
        let table = self.field(0, (0x20, 8), (0x1c, 4))?;
        let size = self.field(0, (0x36, 2), (0x2a, 2))?;
        let count = self.field(0, (0x38, 2), (0x2c, 2))?;
        let all = (0..count).filter_map(|index| index.checked_mul(size)?.checked_add(table));
        let first = all.into_iter().find(|at| self.number(*at, 4) == Some(LOAD))?;
        self.field(first, (0x10, 8), (0x08, 4))?.checked_add(offset)
    }

    /// The function that an address is in, and how far from its beginning.
    pub(crate) fn symbol(&self, address: u64) -> Option<String> {
        [SYMTAB, DYNSYM].into_iter().find_map(|of| {
            let (mut places, names) = self.symbols(of)?;
            places.find_map(|at| {
                let kind = self.field(at, (4, 1), (12, 1))? as u8 & 0xf;
                let begin = self.field(at, (8, 8), (4, 4))?;
                let from_it = address.checked_sub(begin)?;
                let is_in = from_it < self.field(at, (16, 8), (8, 4))?;
                if !is_in || !FUNCTIONS.contains(&kind) {
                    return None;
                }
                Some(format!("{}+{from_it:#x}", self.name(at, names)?))
            })
        })
    }

    fn name_if_undefined(&self, symbol: u64, names: u64) -> Option<String> {
        let kind = self.field(symbol, (4, 1), (12, 1))? as u8 & 0xf;
        let section = self.field(symbol, (6, 2), (14, 2))?;
        if section != 0 || !FUNCTIONS.contains(&kind) {
            return None;
        }
        self.name(symbol, names)
    }

    fn name(&self, symbol: u64, names: u64) -> Option<String> {
        let at = usize::try_from(names.checked_add(self.number(symbol, 4)?)?).ok()?;
        let name = self.octets.get(at..)?.split(|octet| *octet == 0).next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}
