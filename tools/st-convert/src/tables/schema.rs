//! The tables and their columns.

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// Numbers below 2^32: ranks, threads, sites, communicators.
    Index,
    /// Numbers that vary within a range: tags, bytes of a call.
    Small,
    /// Numbers that ascend or vary freely: times, positions, bytes.
    Large,
    /// Text of which there are few.
    Text,
}

/// A column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name, which ends with its unit.
    pub name: &'static str,
    /// What its values are.
    pub holds: Type,
    /// It may be empty.
    pub optional: bool,
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

const fn index(name: &'static str) -> Column {
    Column { name, holds: Type::Index, optional: false }
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

/// Index of a table in [`TABLES`].
pub const EVENTS: usize = 0;
/// Index of a table in [`TABLES`].
pub const MESSAGES: usize = 1;
/// Index of a table in [`TABLES`].
pub const SITES: usize = 2;
/// Index of a table in [`TABLES`].
pub const RANKS: usize = 3;
/// Index of a table in [`TABLES`].
pub const COMMS: usize = 4;
/// Index of a table in [`TABLES`].
pub const WAITS: usize = 5;
/// Index of a table in [`TABLES`].
pub const PHASES: usize = 6;
/// Index of a table in [`TABLES`].
pub const TOTALS: usize = 7;

/// All tables; st-convert(1) says what the columns mean.
pub const TABLES: [Table; 8] = [
    Table {
        name: "events",
        columns: &[
            index("rank"),
            index("thread"),
            large("call"),
            text("function"),
            maybe(index("site")),
            maybe(large("enter_ns")),
            maybe(large("exit_ns")),
            small("calls"),
            maybe(index("comm")),
            maybe(index("dest")),
            maybe(index("source")),
            maybe(small("tag")),
            small("sent_bytes"),
            small("received_bytes"),
            maybe(text("error")),
        ],
    },
    Table {
        name: "messages",
        columns: &[
            maybe(index("from_rank")),
            maybe(index("from_thread")),
            large("sent_call"),
            maybe(index("to_rank")),
            maybe(index("to_thread")),
            large("posted_call"),
            large("received_call"),
            maybe(large("sent_ns")),
            maybe(large("posted_ns")),
            maybe(large("received_ns")),
            maybe(index("comm")),
            small("tag"),
            small("bytes"),
        ],
    },
    Table {
        name: "sites",
        columns: &[
            index("site"),
            text("id"),
            maybe(text("place")),
            maybe(text("function")),
            maybe(text("file")),
            maybe(index("line")),
            maybe(text("stack")),
        ],
    },
    Table {
        name: "ranks",
        columns: &[
            index("rank"),
            maybe(text("host")),
            index("threads"),
            large("calls"),
            maybe(large("time_ns")),
            maybe(large("mpi_ns")),
            large("sent_bytes"),
            large("received_bytes"),
        ],
    },
    Table { name: "comms", columns: &[index("comm"), text("name"), text("members"), maybe(text("remote"))] },
    Table {
        name: "waits",
        columns: &[
            index("rank"),
            index("thread"),
            large("call"),
            text("kind"),
            text("function"),
            maybe(index("site")),
            large("begin_ns"),
            large("wait_ns"),
            index("for_rank"),
            text("for_function"),
            maybe(index("for_site")),
        ],
    },
    Table {
        name: "phases",
        columns: &[
            index("rank"),
            maybe(index("loop")),
            maybe(small("level")),
            maybe(large("iteration")),
            text("function"),
            maybe(index("site")),
            large("begin_ns"),
            large("end_ns"),
            small("calls"),
            small("compute_ns"),
            small("mpi_ns"),
            maybe(small("wait_ns")),
        ],
    },
    Table {
        name: "totals",
        columns: &[
            index("rank"),
            text("function"),
            maybe(index("site")),
            large("calls"),
            maybe(large("time_ns")),
            maybe(large("before_ns")),
            large("sent_bytes"),
            large("received_bytes"),
            maybe(large("wait_ns")),
        ],
    },
];
