//! An OAuth 2.1 resource server's half: it accepts the access tokens of one issuer (RFC 9068).
//!
//! [`Verifier`] turns the text of a token into a principal and the time until which the token is valid. It needs the keys of
//! the issuer, which [`Fetch`] gets. The caller passes the time. This crate knows neither HTTP servers nor the host's own tokens.
//!
//! | file | does |
//! |---|---|
//! | `token.rs` | the form of a token: header, claims, and the checks of both |
//! | `signature.rs` | signatures, with ring |
//! | `jwk.rs` | the keys in a JWK set |
//! | `keys.rs` | which keys are known, and when they are fetched again |
//! | `discovery.rs` | where an issuer has its keys |
//! | `fetch.rs` | the port to the issuer, and its implementation |
//! | `subject.rs` | the name of the principal |
//! | `scope.rs` | the roles and groups of a scope |

mod discovery;
mod fetch;
mod jwk;
mod keys;
mod scope;
mod signature;
mod subject;
mod token;
mod verifier;

pub use fetch::{Fetch, FetchError, HttpFetch};
pub use keys::{MAX_AGE, MAX_KEPT, PAUSE};
pub use scope::{Scope, Scopes};
pub use subject::{IssuerNames, is_reserved};
pub use token::{Algorithm, Invalid};
pub use verifier::{NotAccepted, Settings, Verified, Verifier};
