//! Tells the outside that something waits for an answer: signed webhooks, delivered at least once.
