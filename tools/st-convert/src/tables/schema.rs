//! The tables and their columns.

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    /// Numbers that vary within a range: ranks, sites, tags.
    Small,
    /// Numbers that ascend or vary freely: times, positions, bytes.
    Large,
    /// Text of which there are few.
    Text,
}

/// A column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) holds: Type,
    /// It may be empty.
    pub(crate) optional: bool,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
}

const fn small(name: &'static str) -> Column {
    Column { name, holds: Type::Small, optional: false }
}
const fn large(name: &'static str) -> Column {
    Column { name, holds: Type::Large, optional: false }
}
const fn text(name: &'static str) -> Column {
    Column { name, holds: Type::Text, optional: false }
}
const fn maybe(column: Column) -> Column {
    Column { optional: true, ..column }
}

/// All tables; st-convert(1) says what the columns mean.
pub(crate) const TABLES: [Table; 5] = [
    Table {
        name: "events",
        columns: &[
            small("rank"),
            small("thread"),
            large("call"),
            text("function"),
            maybe(small("site")),
            maybe(large("enter_ns")),
            maybe(large("exit_ns")),
            small("calls"),
            maybe(small("comm")),
            maybe(small("dest")),
            maybe(small("source")),
            maybe(small("tag")),
            small("sent_bytes"),
            small("received_bytes"),
            maybe(text("error")),
        ],
    },
    Table {
        name: "messages",
        columns: &[
            maybe(small("from_rank")),
            maybe(small("from_thread")),
            large("sent_call"),
            maybe(small("to_rank")),
            maybe(small("to_thread")),
            large("posted_call"),
            large("received_call"),
            maybe(large("sent_ns")),
            maybe(large("posted_ns")),
            maybe(large("received_ns")),
            small("comm"),
            small("tag"),
            small("bytes"),
        ],
    },
    Table {
        name: "sites",
        columns: &[small("site"), text("id"), maybe(text("place")), maybe(text("stack"))],
    },
    Table {
        name: "ranks",
        columns: &[
            small("rank"),
            maybe(text("host")),
            small("threads"),
            large("calls"),
            maybe(large("time_ns")),
            maybe(large("mpi_ns")),
            large("sent_bytes"),
            large("received_bytes"),
        ],
    },
    Table { name: "comms", columns: &[small("comm"), text("name"), text("members"), maybe(text("remote"))] },
];
