//! Damage whose checksums are right: what a hostile file has, and chance hardly ever makes.
//!
//! Frames are split and joined here by the letter of st-stream(5), apart from the library that is tested. Payloads that
//! are compressed with zstd are damaged as they are before compression, others also as they are stored. The same seed
//! makes the same damage.

use std::io::Read;

/// Bytes before the first frame.
const PREAMBLE: usize = 11;
const END: u8 = 0;
const ZSTD: u8 = 1;

/// A frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawFrame {
    /// Its kind.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its payload, as stored.
    pub payload: Vec<u8>,
}

/// The frames of a whole stream; `None` if it is none.
#[must_use]
pub fn frames(stream: &[u8]) -> Option<Vec<RawFrame>> {
    let mut rest = stream.get(PREAMBLE..)?;
    let mut out = Vec::new();
    while let [kind, flags, tail @ ..] = rest {
        let (mut length, mut shift) = (0usize, 0);
        let mut bytes = tail.iter();
        for byte in bytes.by_ref() {
            length |= usize::from(byte & 0x7F).checked_shl(shift)?;
            shift += 7;
            if *byte < 0x80 {
                break;
            }
        }
        let body = bytes.as_slice().get(4..)?;
        let payload = body.get(..length)?.to_vec();
        out.push(RawFrame { kind: *kind, flags: *flags, payload });
        rest = &body[length..];
    }
    Some(out)
}

/// A stream of these frames, with the preamble of another, right checksums, and as many frames as its end says.
#[must_use]
pub fn stream(like: &[u8], frames: &[RawFrame]) -> Vec<u8> {
    let mut out = like.get(..PREAMBLE).unwrap_or_default().to_vec();
    for (n, frame) in (0u32..).zip(frames) {
        let mut payload = frame.payload.clone();
        if let (END, Some(number)) = (frame.kind, payload.first_chunk_mut()) {
            *number = n.to_le_bytes();
        }
        let mut head = vec![frame.kind, frame.flags];
        let mut length = payload.len();
        while length >= 0x80 {
            head.push(u8::try_from(length & 0x7F).unwrap_or(0) | 0x80);
            length >>= 7;
        }
        head.push(u8::try_from(length).unwrap_or(0));
        let crc = crc32c::crc32c_append(crc32c::crc32c(&head), &payload);
        out.extend(head);
        out.extend(crc.to_le_bytes());
        out.extend(payload);
    }
    out
}

/// Numbers by chance, the same for the same seed (splitmix64).
#[derive(Clone, Debug)]
pub struct Chance(pub u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let a = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let b = (a ^ a >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        b ^ b >> 31
    }

    /// A number below `n`; 0 if `n` is.
    fn below(&mut self, n: usize) -> usize {
        let n = u64::try_from(n).unwrap_or(0);
        self.next().checked_rem(n).and_then(|k| usize::try_from(k).ok()).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

/// Numbers that lie at bounds, as LEB128.
const BOUNDS: [&[u8]; 10] = [
    &[0],
    &[1],
    &[0x7F],
    &[0x80, 0x01],
    &[0xFF, 0x7F],
    &[0xFF, 0xFF, 0x03],
    &[0x80, 0x80, 0x80, 0x08],
    &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F],
    &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F],
    &[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
];

/// Damages bytes in one to four places.
pub fn damage(bytes: &mut Vec<u8>, chance: &mut Chance) {
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len());
        let to = bytes.len().min(at + 1 + chance.below(8));
        match chance.below(8) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, chance.byte()),
            2 => drop(bytes.drain(at..to)),
            3 => {
                let again = bytes[at..to].to_vec();
                bytes.splice(at..at, again);
            }
            4 => drop(bytes.splice(at..to, BOUNDS[chance.below(BOUNDS.len())].iter().copied())),
            5 => drop(bytes.splice(at..to.min(at + 1), BOUNDS[chance.below(BOUNDS.len())].iter().copied())),
            6 => bytes.iter_mut().skip(at).take(1).for_each(|b| *b = chance.byte()),
            _ => {
                let bit = 1 << chance.below(8);
                bytes.iter_mut().skip(at).take(1).for_each(|b| *b ^= bit);
            }
        }
    }
}

/// A stream with damage in one or two of its frames, or among them; every checksum is right. `None` if it is no stream.
#[must_use]
pub fn damaged(whole: &[u8], seed: u64) -> Option<Vec<u8>> {
    let mut chance = Chance(seed);
    let mut all = frames(whole)?;
    for _ in 0..=chance.below(2) {
        let at = chance.below(all.len());
        match chance.below(16) {
            0 => drop(all.remove(at)),
            1 => all.insert(at, all[at].clone()),
            2 => all[at].flags ^= 1 << chance.below(8),
            3 => all[at].kind = chance.byte() & 15,
            4 => {
                let other = chance.below(all.len());
                all.swap(at, other);
            }
            5 => damage(&mut all[at].payload, &mut chance),
            _ => {
                if all[at].flags & ZSTD != 0 {
                    let mut expanded = Vec::new();
                    let decoder = zstd::stream::read::Decoder::new(&all[at].payload[..]).ok()?;
                    decoder.take(1 << 26).read_to_end(&mut expanded).ok()?;
                    all[at].payload = expanded;
                    all[at].flags &= !ZSTD;
                }
                damage(&mut all[at].payload, &mut chance);
            }
        }
        if all.is_empty() {
            break;
        }
    }
    Some(stream(whole, &all))
}

/// Bytes of a journal's head, of which the second and third 64 describe its regions.
const HEAD: usize = 4096;
const DESCRIPTORS: [usize; 2] = [64, 128];
const NUMBERS: usize = 8;

/// A journal with damage in a snapshot or log, and right checksums. `None` if it is none.
#[must_use]
pub fn damaged_journal(whole: &[u8], seed: u64) -> Option<Vec<u8>> {
    let mut chance = Chance(seed);
    let mut out = whole.to_vec();
    let number =
        |bytes: &[u8], at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<NUMBERS>()?));
    let regions: Vec<usize> =
        DESCRIPTORS.into_iter().filter(|at| number(whole, at + 2 * NUMBERS).is_some_and(|n| n > 0)).collect();
    let at = *regions.get(chance.below(regions.len()))?;
    let field = |i: usize| usize::try_from(number(whole, at + i * NUMBERS)?).ok();
    let (offset, snapshot, log) = (field(1)?, field(2)?, field(5)?);
    let (from, to) = match chance.below(2) {
        0 => (offset, offset + snapshot),
        _ => (offset + snapshot, offset + snapshot + log),
    };
    // What does not fit stays as it was.
    let mut part = whole.get(from..to)?.to_vec();
    damage(&mut part, &mut chance);
    part.resize(to - from, 0);
    // Frames of the snapshot's stream keep their checksums, too.
    let magic = [0x89, b'S', b'T', b'T'];
    let begins = part.windows(magic.len()).position(|w| w == magic);
    if let Some(stream) = begins.and_then(|begins| part.get_mut(begins..)) {
        mend(stream);
    }
    out[from..to].copy_from_slice(&part);
    if chance.below(4) == 0 {
        // Beyond the descriptors: the threads' slots.
        let at = DESCRIPTORS[1] + 64 + chance.below(HEAD - DESCRIPTORS[1] - 64);
        *out.get_mut(at)? = chance.byte();
    }
    let mut crc = crc32c::crc32c(out.get(at..at + 4 * NUMBERS)?);
    crc = crc32c::crc32c_append(crc, out.get(offset..offset + snapshot)?);
    out.get_mut(at + 4 * NUMBERS..at + 5 * NUMBERS)?.copy_from_slice(&u64::from(crc).to_le_bytes());
    Some(out)
}

/// Mends the checksums of a stream in place, as far as its frames can be found.
pub fn mend(stream: &mut [u8]) {
    let mut at = PREAMBLE;
    while let Some(head) = stream.get(at..at + 2).map(<[u8]>::to_vec) {
        let bytes = stream[at + 2..].iter().take(5);
        let mut length = 0usize;
        let mut n = 0;
        for (i, byte) in bytes.enumerate() {
            length |= usize::from(byte & 0x7F) << (7 * i);
            n = i + 1;
            if *byte < 0x80 {
                break;
            }
        }
        let crc_at = at + 2 + n;
        let end = crc_at + 4 + length;
        let Some(payload) = stream.get(crc_at + 4..end) else { return };
        let crc = crc32c::crc32c_append(crc32c::crc32c(&stream[at..crc_at]), payload);
        stream[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
        if head[0] == END {
            return;
        }
        at = end;
    }
}
