//! The registry as a whole, on a sandbox of paper.

mod declared;
mod folder;
mod granted;
mod loading;
mod running;
