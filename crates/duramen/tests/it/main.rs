//! Integration tests of the engine's public interface.

mod documents;
