//! What commands print of traces whose answers are known.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod at;
mod clusters;
mod common;
mod diff;
mod end;
mod explain;
mod follow;
mod forecast;
mod hist;
mod leaks;
mod logical;
mod long;
mod mape;
mod matrix;
mod messages;
mod paper;
mod paused;
mod phases;
mod pictures;
mod planted;
mod predict;
mod report;
mod sizes;
mod summary;
mod timeline;
mod times;
mod why;
mod width;
