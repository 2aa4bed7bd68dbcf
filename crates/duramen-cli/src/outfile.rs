//! Files that a command writes.

pub(crate) use duramen_sql::replace_file as replace;
