//! A reader of protobuf's wire format, by field numbers and nothing else.

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, in order.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a> {
    pub(crate) all: Vec<(u64, Field<'a>)>,
}

pub(crate) fn fields(bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let (mut at, mut all) = (0, Vec::new());
    let varint = |at: &mut usize| {
        let (mut n, mut shift) = (0u64, 0);
        loop {
            let byte = bytes[*at];
            *at += 1;
            n |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return n;
            }
        }
    };
    while at < bytes.len() {
        let key = varint(&mut at);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut at)),
            1 => {
                at += 8;
                Field::Number(u64::from_le_bytes(bytes[at - 8..at].try_into().unwrap()))
            }
            2 => {
                let length = usize::try_from(varint(&mut at)).unwrap();
                at += length;
                Field::Bytes(&bytes[at - length..at])
            }
            other => unreachable!("wire type {other}"),
        };
        all.push((key >> 3, value));
    }
    all
}

impl<'a> Field<'a> {
    pub(crate) fn message(self) -> Message<'a> {
        match self {
            Field::Bytes(bytes) => Message { all: fields(bytes) },
            Field::Number(n) => unreachable!("{n} is no message"),
        }
    }

    pub(crate) fn fixed(self) -> u64 {
        match self {
            Field::Number(n) => n,
            Field::Bytes(_) => unreachable!("no number"),
        }
    }
}

impl<'a> Message<'a> {
    pub(crate) fn of(&self, number: u64) -> impl Iterator<Item = Field<'a>> + '_ {
        self.all.iter().filter(move |(n, _)| *n == number).map(|(_, field)| *field)
    }

    /// A number; 0 if it is not there.
    pub(crate) fn number(&self, number: u64) -> u64 {
        self.of(number).next().map_or(0, Field::fixed)
    }

    pub(crate) fn signed(&self, number: u64) -> i64 {
        self.number(number).cast_signed()
    }

    pub(crate) fn text(&self, number: u64) -> String {
        match self.of(number).next() {
            Some(Field::Bytes(bytes)) => String::from_utf8(bytes.to_vec()).unwrap(),
            _ => String::new(),
        }
    }
}
