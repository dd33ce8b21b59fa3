//! The doors, through a real router over a real host: only tools, plugins, tokens and time are made up.

mod answers;
mod auth;
mod document;
mod events;
mod formats;
mod problems;
mod serving;
mod tools;
mod turns;
mod world;
