//! The six file operations.
