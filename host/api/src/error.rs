//! Why a body is not what it has to be.

use std::fmt;

use crate::Pointed;

/// Why a body was refused, or could not be written.
#[derive(Debug)]
pub enum Error {
    /// It is not JSON that this host takes. Says why.
    BadJson(String),
    /// It is JSON, and these places of it are wrong.
    Invalid(Vec<Pointed>),
    /// A value could not be written as JSON: a fault of the host.
    Unwritable(String),
}

/// What reading and writing bodies gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// One place of the body is wrong.
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
