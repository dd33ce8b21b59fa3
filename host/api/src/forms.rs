//! OpenAPI schemas of the responses whose form the request chooses. `formats` writes them.

use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{ToolList, Turn};

/// A turn, or its results in the format of the model's provider.
pub struct TurnInForm;

impl PartialSchema for TurnInForm {
    fn schema() -> RefOr<Schema> {
        let content = ArrayBuilder::new().items(object("A `tool_result`."));
        let message = object("`format=anthropic`: the message to append.")
            .property("role", ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["user"])))
            .required("role")
            .property("content", content)
            .required("content");
        let items = list("`format=openai`: the messages to append; `format=openai-responses`: the items.");
        any_of([Ref::from_schema_name(Turn::name()).into(), items.into(), message.into()])
    }
}

impl ToSchema for TurnInForm {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Turn::name().into_owned(), Turn::schema()));
        Turn::schemas(schemas);
    }
}

/// The live tools, or their list in the format of a model's provider.
pub struct ToolsInForm;

impl PartialSchema for ToolsInForm {
    fn schema() -> RefOr<Schema> {
        let tool = object("A tool.")
            .property("name", ObjectBuilder::new().schema_type(Type::String))
            .required("name")
            .property("inputSchema", object("A JSON Schema."))
            .required("inputSchema");
        let mcp = object("`format=mcp`: the result of `tools/list`.")
            .property("tools", ArrayBuilder::new().items(tool))
            .required("tools");
        let tools = list("`format=openai`, `openai-responses`, `anthropic`: the `tools` of a request.");
        any_of([Ref::from_schema_name(ToolList::name()).into(), tools.into(), mcp.into()])
    }
}

impl ToSchema for ToolsInForm {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ToolList::name().into_owned(), ToolList::schema()));
        ToolList::schemas(schemas);
    }
}

fn object(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object).description(Some(description))
}

fn list(description: &str) -> ArrayBuilder {
    ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::Object)).description(Some(description))
}

fn any_of(forms: [RefOr<Schema>; 3]) -> RefOr<Schema> {
    forms.into_iter().fold(AnyOfBuilder::new(), AnyOfBuilder::item).into()
}
