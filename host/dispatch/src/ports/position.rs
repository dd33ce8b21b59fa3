//! The order of the commits of a store.

/// A point in the order of all commits of one store. The first commit with facts has position 1, and each further one
/// the next number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);
