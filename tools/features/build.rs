//! Nothing: dependencies of builds are looked at only where there is one.

fn main() {}
