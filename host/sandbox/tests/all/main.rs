//! What the sandbox promises, each promise with a guest that tries it. The guests are modules written by hand, so that
//! nothing has to be built and each does exactly one thing.

mod cache;
mod calls;
mod guests;
mod keyvalue;
mod limits;
mod loading;
mod reports;
mod world;
