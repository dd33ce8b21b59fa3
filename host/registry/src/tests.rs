//! The registry as a whole, on a sandbox of paper.

mod folder;
mod loading;
mod running;
