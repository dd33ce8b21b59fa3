//! Text of people, which stays readable: each comes out as it went in, in every form.

use crate::Rows;

#[test]
fn honest_text_stays_as_it_is() {
    let mut wrong = Vec::new();
    for honest in Rows::read().honest.values().flatten() {
        let written = serde_json::Value::from(honest.as_str()).to_string();
        wrong.extend((text::line(honest) != *honest).then(|| text::line(honest).into_owned()));
        wrong.extend((text::json(&written) != written).then(|| text::json(&written)));
        assert_eq!(text::block(honest, "") == format!("{honest}\n"), text::line(honest) == *honest);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What this costs: honest text that is written out, since it cannot be told from a forgery. Nothing of it is lost.
#[test]
fn some_honest_text_is_escaped_too() {
    for (honest, shown) in Rows::read().meant_well {
        assert_eq!(text::line(&honest), shown);
    }
}
