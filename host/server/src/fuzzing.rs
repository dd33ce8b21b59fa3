//! Entry points for the fuzz targets, with the feature `fuzzing`. They are not part of the crate's interface.

use api::{formats, json};
use dispatch::CallRequest;

use crate::error::Error;

/// Reads the calls of a submitted body.
///
/// # Errors
/// The status and the sentence of the refusal.
pub fn submitted(body: &[u8]) -> Result<Vec<CallRequest>, (u16, String)> {
    let is_provider = |name: &str| name.starts_with("web_");
    formats::submitted(body, &is_provider)
        .map(|submitted| submitted.calls)
        .map_err(|error| Error::from(error).leaving())
}

/// Reads an answer to a suspension.
///
/// # Errors
/// The status and the sentence of the refusal.
pub fn resolve(body: &[u8]) -> Result<api::Resolve, (u16, String)> {
    json::object(body).map_err(|error| Error::from(error).leaving())
}
