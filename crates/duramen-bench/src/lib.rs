//! The workloads behind every published figure of Duramen.
