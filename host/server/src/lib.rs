//! The HTTP door: public JSON, events, authentication.
