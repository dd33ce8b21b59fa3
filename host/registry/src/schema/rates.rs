//! Numbers that count the parts of a value, and the costs of each part.

/// One number each for locations, strings, bytes of strings, and squared lengths of strings. Names of members are also
/// strings. The arithmetic saturates, so a cost over the bound stays over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rates(pub(super) [u64; 4]);

impl Rates {
    /// The counts of a string.
    pub(super) fn of_text(text: &str) -> Self {
        let bytes = text.len() as u64;
        Self([0, 1, bytes, bytes.saturating_mul(bytes)])
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|n| self.0[n].saturating_add(other.0[n])))
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self(std::array::from_fn(|n| self.0[n].max(other.0[n])))
    }

    pub(super) fn times(self, other: Self) -> u64 {
        let products = self.0.iter().zip(other.0).map(|(rate, count)| rate.saturating_mul(count));
        products.fold(0, u64::saturating_add)
    }
}
