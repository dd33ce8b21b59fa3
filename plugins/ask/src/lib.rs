//! Asks the user. The answer is the result of the call.
//!
//! The question is the model's text, so the prompt says that the agent asks, and the host escapes it. The host shows all
//! arguments beside the prompt, including the choices and the context. The schema of answers belongs to the tool and not to the
//! call, so an answer is a text: one of the choices, or the user's own words.

use std::time::Duration;

use toolgate_sdk::prelude::*;

/// What to ask.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the host renders the arguments; the plugin only declares them")]
struct Question {
    /// One question, complete in itself: the user does not see the conversation beside it.
    #[schemars(length(min = 1, max = 2000))]
    question: String,
    /// Answers to choose from, where the question has a few. The user may still answer in their own words.
    #[schemars(length(max = 12))]
    choices: Option<Vec<String>>,
    /// Background that the user needs to answer, if the question alone does not give it.
    #[schemars(length(max = 4000))]
    context: Option<String>,
}

/// The user's answer.
#[derive(Serialize, JsonSchema)]
struct Answer {
    /// The answer: one of the choices, or the user's own words.
    #[schemars(length(min = 1, max = 10_000))]
    answer: String,
}

toolgate_sdk::declarations! {
    Tool::human::<Question, Answer>(
        "ask_user",
        "Asks the user a question and waits for the answer. Use it when only the user can know or decide.",
    )
    .title("A question for you")
    .prompt("The agent asks: {question}")
    .expires(Duration::from_secs(24 * 60 * 60))
    .responses(&["answer", "decline"])
    .never_evict(),
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_sdk::testing::check;

    #[test]
    fn the_declarations_are_legal() {
        check(&tools()).unwrap();
    }

    #[test]
    fn a_question_is_short_and_its_choices_are_few() {
        let tools = tools();
        let parameters = tools.iter().next().unwrap().parameters();
        assert_eq!(parameters["required"], json!(["question"]));
        let properties = &parameters["properties"];
        let most = [
            &properties["question"]["maxLength"],
            &properties["choices"]["maxItems"],
            &properties["context"]["maxLength"],
        ];
        assert_eq!(most, [2000, 12, 4000]);
    }

    #[test]
    fn an_answer_is_an_object_with_a_text() {
        let tools = tools();
        let options = tools.iter().next().unwrap().options();
        assert_eq!(options["response"]["required"], json!(["answer"]));
        assert_eq!(options["responses"], json!(["answer", "decline"]));
    }
}
