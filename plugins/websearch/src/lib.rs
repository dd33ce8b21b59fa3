//! Web search, which the model's provider runs inside its own stream. The host only records the calls.

use toolgate_sdk::prelude::*;

/// What to search for.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the provider reads the arguments; the plugin only declares them")]
struct Query {
    /// Words, as one would type them into a search engine.
    #[schemars(length(min = 1, max = 400))]
    query: String,
}

toolgate_sdk::declarations! {
    Tool::provider::<Query>("web_search", "Searches the web.").read_only().open_world(true).keep_for_turns(8),
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::testing::check;

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }
}
