//! The registry as a whole, on a fake sandbox.

mod declared;
mod durable;
mod folder;
mod granted;
mod loading;
mod running;
mod shared;
mod starting;
