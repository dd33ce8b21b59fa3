//! `show`: one suspension or one turn, in full.

use crate::args::Show;
use crate::card;
use crate::client::{Client, understand};
use crate::report::{Exit, Report};
use crate::terminal::Terminal;

pub(super) fn run(args: &Show, terminal: &Terminal) -> Result<(), Report> {
    let client = Client::new(&args.host)?;
    let path = if let Ok(id) = args.id.parse::<domain::SuspensionId>() {
        format!("/v1/suspensions/{id}")
    } else if let Ok(id) = args.id.parse::<domain::TurnId>() {
        format!("/v1/conversations/{}/turns/{id}", args.conversation)
    } else {
        return Err(Report::new(Exit::Usage, format!("{:?} is the id of neither a suspension nor a turn", args.id))
            .hint("ids begin with susp_ or turn_; `toolgate pending` shows both"));
    };
    let text = client.get(&path, &[])?;
    let shown = if args.json {
        text::json(&text)
    } else if path.starts_with("/v1/suspensions") {
        card::suspension(&understand(&text)?, terminal)
    } else {
        card::turn(&understand(&text)?, terminal)
    };
    terminal.line(shown.trim_end())?;
    Ok(())
}
