//! The answers of people and external systems to a durable tool, as an author writes them: in an example, or at a terminal.

use serde::de::IgnoredAny;

/// The kind of answer that a tool asks for.
#[derive(Debug, Clone, Copy)]
pub enum Asks<'a> {
    /// A decision about a value.
    Approval,
    /// One of these choices.
    Choice(&'a [String]),
    /// Data.
    Data,
}

/// An answer. Data and edited values are JSON texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Approved { edited: Option<String>, comment: Option<String> },
    Denied { comment: Option<String> },
    Chosen { choice: String, data: Option<String> },
    Data(String),
}

/// The text is no answer to an approval.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("answer an approval with `approve`, with `deny` and a reason, or with the changed value, not with {0:?}")]
pub struct NoDecision(String);

impl Reply {
    /// Reads an answer. Text that is not JSON is data as a JSON string. After a choice may come data.
    ///
    /// # Errors
    /// [`NoDecision`]
    pub fn read(text: &str, asks: Asks<'_>) -> Result<Self, NoDecision> {
        let text = text.trim();
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
        let some = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        match asks {
            Asks::Data if is_json => Ok(Self::Data(text.to_owned())),
            Asks::Data => Ok(Self::Data(serde_json::Value::from(text).to_string())),
            Asks::Choice(choices) => {
                let after =
                    |choice: &str| text.strip_prefix(choice).filter(|rest| rest.is_empty() || rest.starts_with(' '));
                let fitting = choices.iter().filter_map(|choice| Some((choice.as_str(), after(choice)?)));
                // A choice may have spaces. The host refuses a word that is not one of the choices.
                let (choice, data) = fitting.max_by_key(|(choice, _)| choice.len()).unwrap_or((first, rest));
                Ok(Self::Chosen { choice: choice.to_owned(), data: some(data) })
            }
            Asks::Approval if is_json => Ok(Self::Approved { edited: Some(text.to_owned()), comment: None }),
            Asks::Approval => match first {
                "approve" => Ok(Self::Approved { edited: None, comment: some(rest) }),
                "deny" => Ok(Self::Denied { comment: some(rest) }),
                _ => Err(NoDecision(text.to_owned())),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_depends_on_what_is_asked() {
        let choices = ["roll".to_owned(), "roll back".to_owned()];
        let some = |text: &str| Some(text.to_owned());
        let chosen = |choice: &str, data| Reply::Chosen { choice: choice.into(), data };
        for (text, asks, expected) in [
            (" {\"a\": 1.0} ", Asks::Data, Reply::Data("{\"a\": 1.0}".into())),
            ("blue one", Asks::Data, Reply::Data("\"blue one\"".into())),
            ("roll back", Asks::Choice(&choices), chosen("roll back", None)),
            ("roll 3", Asks::Choice(&choices), chosen("roll", some("3"))),
            ("stop", Asks::Choice(&choices), chosen("stop", None)),
            ("approve", Asks::Approval, Reply::Approved { edited: None, comment: None }),
            ("approve fine", Asks::Approval, Reply::Approved { edited: None, comment: some("fine") }),
            ("[1]", Asks::Approval, Reply::Approved { edited: some("[1]"), comment: None }),
            ("deny not today", Asks::Approval, Reply::Denied { comment: some("not today") }),
        ] {
            assert_eq!(Reply::read(text, asks), Ok(expected), "{text}");
        }
        assert_eq!(Reply::read("yes", Asks::Approval), Err(NoDecision("yes".into())));
    }
}
