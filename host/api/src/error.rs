//! Errors of reading and writing bodies.

use std::fmt;

use crate::Pointed;

/// Why a body was refused, or could not be written.
#[derive(Debug)]
pub enum Error {
    /// The body is not JSON, or not JSON that this host accepts. Holds the reason.
    BadJson(String),
    /// The body is JSON with errors at these places.
    Invalid(Vec<Pointed>),
    /// A value could not be written as JSON. This is a fault of the host.
    Unwritable(String),
}

/// The result of reading or writing a body.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error at one place of the body.
    pub fn invalid_at(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid(vec![Pointed::new(pointer, message)])
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadJson(why) | Self::Unwritable(why) => f.write_str(why),
            Self::Invalid(places) => {
                let places: Vec<String> = places.iter().map(Pointed::to_string).collect();
                f.write_str(&places.join("; "))
            }
        }
    }
}

impl std::error::Error for Error {}
