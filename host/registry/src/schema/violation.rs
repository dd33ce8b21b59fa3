//! The messages about values that break a schema. A model reads them and corrects the value.

use domain::Violation;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::Value;

/// Messages are cut at this many bytes. If a description is longer than half of this, it does not quote the value.
const MAX_MESSAGE: usize = 400;

/// The alternatives, and the faults of each, among which the member that chooses is looked for.
const MAX_EXAMINED: usize = 64;

pub(super) fn violation(error: &ValidationError<'_>) -> Violation {
    let alternatives = alternatives(error.kind());
    if let Some((pointer, choices)) = alternatives.and_then(discriminated) {
        let why = if pointer == error.instance_path().as_str() { "" } else { ", which choose between alternatives" };
        return Violation { pointer, message: cut(format!("it is not one of {choices}{why}")) };
    }
    let mut message = described(error);
    if let Some(near) = alternatives.and_then(|all| nearest(all, error.instance_path().as_str())) {
        let pointer = near.instance_path().as_str();
        let place = if pointer.is_empty() { String::new() } else { format!("at {pointer}: ") };
        message = format!("{message}; for the closest alternative, change: {place}{}", described(near));
    }
    Violation { pointer: error.instance_path().as_str().to_owned(), message: cut(message) }
}

/// The faults of each alternative, if a value matches none of several.
fn alternatives(kind: &ValidationErrorKind) -> Option<&[Vec<ValidationError<'static>>]> {
    match kind {
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => Some(context),
        _ => None,
    }
}

/// Returns the library's message, with more of the choices. A long message omits the value, because the reader has the
/// value.
fn described(error: &ValidationError<'_>) -> String {
    let text = match error.kind() {
        ValidationErrorKind::Enum { options } => {
            let value = error.instance().to_string();
            let value = if value.len() <= MAX_MESSAGE / 4 { &value } else { "value" };
            return format!("{value} is not one of {}", choices(options.as_array().into_iter().flatten()));
        }
        _ => error.to_string(),
    };
    if text.len() <= MAX_MESSAGE / 2 { text } else { cut(error.masked().to_string()) }
}

/// The choices, as far as a message has room for them.
fn choices<'a>(choices: impl Iterator<Item = &'a Value>) -> String {
    let choices: Vec<String> = choices.map(Value::to_string).collect();
    let mut room = MAX_MESSAGE / 2;
    let fits = |choice: &&String| {
        room = room.saturating_sub(choice.len() + 2);
        room > 0
    };
    let listed: Vec<&str> = choices.iter().take_while(fits).map(String::as_str).collect();
    match choices.len() - listed.len() {
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// The location of the member that chooses between the alternatives, and its values. Every alternative has constants for
/// it, and none fits: the other faults of the alternatives then mean nothing.
fn discriminated(alternatives: &[Vec<ValidationError<'static>>]) -> Option<(String, String)> {
    fn at<'a>(faults: &'a [ValidationError<'static>], path: &str) -> Option<&'a [Value]> {
        let mut first = faults.iter().take(MAX_EXAMINED);
        first.find(|fault| fault.instance_path().as_str() == path).and_then(constants)
    }
    if alternatives.len() > MAX_EXAMINED {
        return None;
    }
    let paths = alternatives
        .first()?
        .iter()
        .take(MAX_EXAMINED)
        .filter(|fault| constants(fault).is_some())
        .map(|fault| fault.instance_path().as_str());
    let (path, all) = paths.into_iter().find_map(|path| {
        let all: Option<Vec<&[Value]>> = alternatives.iter().map(|faults| at(faults, path)).collect();
        all.map(|all| (path, all))
    })?;
    (alternatives.len() > 1).then(|| (path.to_owned(), choices(all.into_iter().flatten())))
}

/// The values that a fault of a constant or of an enumeration expects.
fn constants<'a>(fault: &'a ValidationError<'static>) -> Option<&'a [Value]> {
    match fault.kind() {
        ValidationErrorKind::Constant { expected_value } => Some(std::slice::from_ref(expected_value.as_ref())),
        ValidationErrorKind::Enum { options } => options.as_array().map(Vec::as_slice),
        _ => None,
    }
}

/// The first fault of the nearest alternative. The value has the type of this alternative if it has the type of any, and the
/// constants of its members if it has those of any. Of several such alternatives, it has the fewest faults. `at` is the location
/// of the value.
fn nearest<'a>(alternatives: &'a [Vec<ValidationError<'static>>], at: &str) -> Option<&'a ValidationError<'static>> {
    let distance = |fault: &ValidationError<'static>| match (fault.kind(), fault.instance_path().as_str() == at) {
        (ValidationErrorKind::Type { .. }, true) => 2,
        (_, false) if constants(fault).is_some() => 1,
        _ => 0,
    };
    let rank =
        |faults: &&Vec<ValidationError<'static>>| (faults.iter().take(MAX_EXAMINED).map(distance).max(), faults.len());
    alternatives.iter().filter(|faults| !faults.is_empty()).min_by_key(rank)?.first()
}

pub(super) fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let kept = message.floor_char_boundary(MAX_MESSAGE);
        let rest = message.len() - kept;
        message.truncate(kept);
        message.push_str(&format!(" … and {rest} bytes more"));
    }
    message
}
