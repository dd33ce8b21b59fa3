//! The registry as a whole, on a fake sandbox.

mod declared;
mod folder;
mod granted;
mod loading;
mod running;
mod starting;
