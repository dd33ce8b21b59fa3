//! The routes with a real router and a real host. Only tools, plugins, tokens and time are simulated.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod access_tokens;
mod answers;
mod auth;
mod bodies;
mod browsers;
mod connections;
mod cross_origin;
mod document;
mod draining;
mod events;
mod external;
mod formats;
mod full_disk;
mod links;
mod loading;
mod long_requests;
mod mcp;
mod pending;
mod policy;
mod problems;
mod provider_answers;
mod quotas;
mod serving;
mod slow_disk;
mod streams;
mod tls;
mod tools;
mod turns;
mod unread;
mod world;
