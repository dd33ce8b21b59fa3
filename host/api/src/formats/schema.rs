//! OpenAPI schemas of the responses whose format depends on the query parameter `format`.

use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{FORMATS, answers};
use crate::{ToolList, Turn};

/// A turn, or its results in the format of the model's provider.
pub struct TurnInFormat;

impl PartialSchema for TurnInFormat {
    fn schema() -> RefOr<Schema> {
        any_of::<Turn>(answers().map(|answer| (answer.schema)()))
    }
}

impl ToSchema for TurnInFormat {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Turn::name().into_owned(), Turn::schema()));
        Turn::schemas(schemas);
    }
}

/// The live tools, or their list in the format of a model's provider.
pub struct ToolsInFormat;

impl PartialSchema for ToolsInFormat {
    fn schema() -> RefOr<Schema> {
        any_of::<ToolList>(FORMATS.iter().filter_map(|format| format.list.as_ref()).map(|list| (list.schema)()))
    }
}

impl ToSchema for ToolsInFormat {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((ToolList::name().into_owned(), ToolList::schema()));
        ToolList::schemas(schemas);
    }
}

pub(super) fn object(description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object).description(Some(description))
}

pub(super) fn list(description: &str) -> ArrayBuilder {
    ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::Object)).description(Some(description))
}

/// Toolgate's own format, or a provider's format.
fn any_of<Own: ToSchema>(others: impl Iterator<Item = RefOr<Schema>>) -> RefOr<Schema> {
    let own = Ref::from_schema_name(Own::name()).into();
    std::iter::once(own).chain(others).fold(AnyOfBuilder::new(), AnyOfBuilder::item).into()
}
