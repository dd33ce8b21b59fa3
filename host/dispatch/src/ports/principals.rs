//! Which principals exist.

use async_trait::async_trait;
use domain::{PrincipalId, Timestamp};

/// Knows who was revoked. Approvals of revoked principals do not count.
#[async_trait]
pub trait Principals: Send + Sync {
    /// Learns of revocations. Called before each decision that depends on them. It may wait for a disk, in another thread.
    async fn refresh(&self) {}

    /// Whether the principal who had this name at a time still has it. A name that was revoked and then given away again
    /// belongs to another principal.
    fn is_current(&self, id: &PrincipalId, since: Timestamp) -> bool;
}

/// For programs that revoke nobody.
impl Principals for () {
    fn is_current(&self, _: &PrincipalId, _: Timestamp) -> bool {
        true
    }
}
