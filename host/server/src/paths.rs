//! Paths that are not in the OpenAPI document, and that layers around the routes know too.

/// The messages of MCP clients.
pub(crate) const MCP: &str = "/mcp";

/// The metadata of the host as a protected resource. Clients look beside the path of the resource, and then at the root.
pub(crate) const RESOURCE_METADATA: [&str; 2] =
    ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"];
