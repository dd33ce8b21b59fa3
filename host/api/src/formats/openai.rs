//! OpenAI's two APIs: Chat Completions, which many other providers speak as well, and Responses.

pub(super) mod chat;
pub(super) mod responses;
