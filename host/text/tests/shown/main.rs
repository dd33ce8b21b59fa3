//! What people are shown of hostile and of honest text: rows of what comes in and what is to come out.

extern crate toolgate_text as text;

mod holds;
mod honest;
mod hostile;
mod property;
