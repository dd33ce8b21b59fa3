//! The OpenAPI document. It comes from the declarations at the routes. This file adds the parts that all routes share.

use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, Ref, RefOr, ResponseBuilder};
use utoipa::{PartialSchema, ToSchema};

use crate::cookies;

/// The description of the whole API.
const ABOUT: &str = "The API of a toolgate host. Every request carries a bearer token, which alone identifies the \
principal. Only `/healthz`, `/readyz`, `/openapi.json`, requests that open a session, and results that are sent to a link need no token. A browser sends \
the cookie of a session instead, and the header `x-toolgate-csrf` with every request except GET and HEAD. Problems are \
`application/problem+json` (RFC 9457); their `code` is stable. A request with an unknown member or parameter is \
refused. Responses may get new members. Times are RFC 3339 in UTC. Responses must not be cached.";

/// Adds the parts that all routes share.
pub(crate) fn finished(mut document: OpenApi) -> OpenApi {
    document.info = InfoBuilder::new()
        .title("toolgate")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(None)
        .build();
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let mut components = document.components.take().unwrap_or_else(|| ComponentsBuilder::new().build());
    components.add_security_scheme("token", bearer);
    let cookie = ApiKeyValue::new(cookies::SESSION);
    components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    let mut schemas = vec![(api::Problem::name().into_owned(), api::Problem::schema())];
    api::Problem::schemas(&mut schemas);
    components.schemas.extend(schemas);
    document.components = Some(components);
    let either = ["token", "session"].map(|scheme| SecurityRequirement::new(scheme, Vec::<String>::new()));
    document.security = Some(either.to_vec());
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.put, &mut item.post, &mut item.delete];
        operations.into_iter().flatten().for_each(problems);
    }
    document
}

/// Sets the schema of a route's problems, and adds those that follow from the form of the request. A route lists only its
/// special ones.
fn problems(operation: &mut Operation) {
    let open = operation.security.is_some();
    let body = operation.request_body.as_ref();
    let mut usual = if body.is_some_and(|body| body.content.contains_key("application/json")) {
        vec![
            ("400", "`bad-json`, `bad-request`"),
            ("408", "`too-slow`: the body did not arrive in time"),
            ("413", "`too-large`"),
            ("415", "`unsupported-media-type`"),
            ("422", "`invalid`: with `errors`"),
        ]
    } else {
        vec![("400", "`bad-request`")]
    };
    if !open {
        let link = "`not-allowed`: a link opened the session, or a page of another site sent the request";
        let busy = "`busy`: the principal has used up its quota; the request had no effect. With `retry-after`";
        usual.extend([("401", "`unauthorized`"), ("403", link), ("429", busy)]);
    }
    usual.push(("421", "`unknown-host`: the server does not accept this host name"));
    usual.push(("500", "`fault`: the host failed. Search its log for the id in `fault`"));
    let failed = "`store-failed`: the disk of the host failed";
    let failed_or_unchecked = "`store-failed`: the disk of the host failed. `draining`: the host ends soon; with `retry-after`. `issuer-unavailable`: the access token cannot be checked now; with `retry-after`";
    usual.push(("503", if open { failed } else { failed_or_unchecked }));
    usual.push(("507", "`no-space`: the disk of the host is full. Most reads go on"));
    let responses = &mut operation.responses.responses;
    for (status, description) in usual {
        let response = || RefOr::T(ResponseBuilder::new().description(description).build());
        responses.entry(status.to_owned()).or_insert_with(response);
    }
    for (status, response) in responses {
        if let RefOr::T(response) = response
            && status.as_str() >= "400"
        {
            let schema = Ref::from_schema_name(api::Problem::name());
            let content = ContentBuilder::new().schema(Some(schema)).build();
            response.content.insert("application/problem+json".to_owned(), content);
        }
    }
}
