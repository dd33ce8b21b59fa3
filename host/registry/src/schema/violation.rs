//! The messages about values that break a schema. A model reads them and corrects the value.

use domain::Violation;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::Value;

/// Messages are cut at this many bytes. If a description is longer than half of this, it does not quote the value.
const MAX_MESSAGE: usize = 400;

/// The alternatives, and the faults of each, among which the member that chooses is looked for.
const MAX_EXAMINED: usize = 64;

pub(super) fn violation(error: &ValidationError<'_>) -> Violation {
    let at = error.instance_path().as_str();
    if let Some((pointer, message)) = chosen(error) {
        return Violation { pointer, message: cut(message) };
    }
    let mut message = described(error);
    let mut near = error;
    while let Some(nearer) = alternatives(near.kind()).and_then(|all| nearest(all, near.instance_path().as_str())) {
        near = nearer;
    }
    if !std::ptr::eq(near, error) {
        let pointer = near.instance_path().as_str();
        let place = if pointer.is_empty() { String::new() } else { format!("at {pointer}: ") };
        message = format!("{message}; for the closest alternative, change: {place}{}", described(near));
    }
    Violation { pointer: at.to_owned(), message: cut(message) }
}

/// The location of a member that chooses between alternatives, and a message with its values, if the value has none of them.
fn chosen(error: &ValidationError<'_>) -> Option<(String, String)> {
    let at = error.instance_path().as_str();
    let (pointer, choices) = discriminated(alternatives(error.kind())?, at)?;
    let why = if pointer == at { "" } else { ", which choose between alternatives" };
    Some((pointer, format!("it is not one of {choices}{why}")))
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
        more if listed.is_empty() && more > 0 => {
            let first = choices.first().map_or("", String::as_str);
            let kept = first.get(..first.floor_char_boundary(MAX_MESSAGE / 4)).unwrap_or_default();
            let more = if more > 1 { format!(", and {} more", more - 1) } else { String::new() };
            format!("{kept} … (cut){more}")
        }
        0 => listed.join(", "),
        more => format!("{} and {more} more", listed.join(", ")),
    }
}

/// The location of the member that chooses between the alternatives for the value at `own`, and its values. Every alternative
/// for values of this type has constants for it, and none fits: the other faults of the alternatives then mean nothing.
fn discriminated(all: &[Vec<ValidationError<'static>>], own: &str) -> Option<(String, String)> {
    fn at<'a>(faults: &'a [ValidationError<'static>], path: &str) -> Option<&'a [Value]> {
        let mut first = faults.iter().take(MAX_EXAMINED);
        first.find(|fault| fault.instance_path().as_str() == path).and_then(constants)
    }
    if all.len() > MAX_EXAMINED {
        return None;
    }
    let is_of_type = |fault: &ValidationError<'static>| {
        !matches!(fault.kind(), ValidationErrorKind::Type { .. }) || fault.instance_path().as_str() != own
    };
    let typed = all.iter().filter(|faults| faults.iter().take(MAX_EXAMINED).all(is_of_type));
    let alternatives: Vec<&Vec<ValidationError<'static>>> = typed.collect();
    if let [faults] = &alternatives[..]
        && let [only] = &faults[..]
    {
        return self::alternatives(only.kind()).and_then(|all| discriminated(all, only.instance_path().as_str()));
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
