//! OpenAI's two APIs: Chat Completions, which many other providers offer too, and Responses.

pub(super) mod chat;
pub(super) mod responses;
