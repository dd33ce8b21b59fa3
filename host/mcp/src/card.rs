//! The card (the extension MCP Apps, `io.modelcontextprotocol/ui`): a page that a client shows beside a call. It shows the call
//! and links to the console. It decides nothing, because a client cannot tell its user from its model.

use domain::Call;
use rmcp::model::{
    CacheScope, CallToolResult, ClientCapabilities, ContentBlock, ListResourcesResult, MetaObject, ReadResourceResult,
    Resource, ResourceContents, Tool,
};
use serde_json::json;

use crate::{results, wait};

/// The tool with which the card asks for the state of its call. Models do not see it.
pub(crate) const STATE: &str = "toolgate_state";

const TITLE: &str = "The state of a call";

const EXTENSION: &str = "io.modelcontextprotocol/ui";

const URI: &str = "ui://toolgate/call.html";

const MIME: &str = "text/html;profile=mcp-app";

const PAGE: &str = include_str!("card.html");

/// How long a client may keep the page, in milliseconds. It changes with the version of the host.
const TTL: u64 = 60_000;

/// Whether the client shows cards.
pub(crate) fn is_shown(declared: Option<&ClientCapabilities>) -> bool {
    declared.and_then(|declared| declared.extensions.as_ref()).is_some_and(|known| known.contains_key(EXTENSION))
}

/// Names the card in the `_meta` of a tool whose calls may wait for people. Other clients ignore it.
pub(crate) fn attach(meta: &mut MetaObject) {
    meta.0.insert("ui".to_owned(), json!({ "resourceUri": URI }));
}

/// The declaration of [`STATE`].
pub(crate) fn tool() -> Tool {
    let mut tool =
        wait::of_one_call(STATE, TITLE, "Returns the state of a call and not its result. It changes nothing.");
    let mut meta = MetaObject::new();
    meta.0.insert("ui".to_owned(), json!({ "visibility": ["app"] }));
    tool.meta = Some(meta);
    tool
}

/// The result of [`STATE`]. The outcome does not count as received: it is for the model.
pub(crate) fn state(about: MetaObject, call: &Call) -> CallToolResult {
    let text = match call.outcome() {
        Some(outcome) => format!("It has ended: {}.", outcome.as_str()),
        None => results::waits_for(call),
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.meta = Some(about);
    result
}

pub(crate) fn resources() -> ListResourcesResult {
    let page = Resource::new(URI, "call").with_title("A call").with_mime_type(MIME);
    ListResourcesResult::with_all_items(vec![page]).with_ttl_ms(TTL).with_cache_scope(CacheScope::Public)
}

/// The content of a resource.
pub(crate) fn read(uri: &str) -> Option<ReadResourceResult> {
    // Without `csp`, the page reaches nothing but its client.
    let mut meta = MetaObject::new();
    meta.0.insert("ui".to_owned(), json!({ "prefersBorder": true }));
    let page = ResourceContents::text(PAGE, URI).with_mime_type(MIME).with_meta(meta);
    let page = ReadResourceResult::new(vec![page]).with_ttl_ms(TTL).with_cache_scope(CacheScope::Public);
    (uri == URI).then_some(page)
}
