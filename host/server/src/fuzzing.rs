//! What the fuzz targets reach. It is there only with the feature `fuzzing`, and no part of what the crate offers.

use api::{formats, json};
use dispatch::CallRequest;

use crate::error::Error;

/// The calls of a submitted body, or the status and the sentence of the refusal.
///
/// # Errors
/// See above.
pub fn submitted(body: &[u8]) -> Result<Vec<CallRequest>, (u16, String)> {
    let is_provider = |name: &str| name.starts_with("web_");
    formats::submitted(body, &is_provider)
        .map(|submitted| submitted.calls)
        .map_err(|error| Error::from(error).leaving())
}

/// Reads an answer to a suspension.
///
/// # Errors
/// Likewise.
pub fn resolve(body: &[u8]) -> Result<api::Resolve, (u16, String)> {
    json::object(body).map_err(|error| Error::from(error).leaving())
}
