//! SQL over every revision of a Duramen database.
