//! The programs that have a page.

use clap::{Command, CommandFactory};

/// The option definitions of every program, in alphabetical order.
pub(crate) fn programs() -> Vec<Command> {
    vec![
        st_cluster::args::Args::command(),
        st_convert::args::Args::command(),
        st_kernels::Args::command(),
        st_merge::args::Args::command(),
        st_record::args::Args::command(),
        st_replay::args::Args::command(),
        st_stat::args::Args::command(),
        st_sync::args::Args::command(),
        st_view::args::Args::command(),
    ]
}
