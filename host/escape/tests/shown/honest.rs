//! Honest text stays unchanged in every form.

use crate::Rows;

#[test]
fn honest_text_stays_as_it_is() {
    let mut wrong = Vec::new();
    for honest in Rows::read().honest.values().flatten() {
        let written = serde_json::Value::from(honest.as_str()).to_string();
        wrong.extend((escape::line(honest) != *honest).then(|| escape::line(honest).into_owned()));
        wrong.extend((escape::json(&written) != written).then(|| escape::json(&written)));
        assert_eq!(escape::block(honest, "") == format!("{honest}\n"), escape::line(honest) == *honest);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Honest text that is escaped because it looks like a forgery. Nothing of it is lost.
#[test]
fn some_honest_text_is_escaped() {
    for (honest, shown) in Rows::read().meant_well {
        assert_eq!(escape::line(&honest), shown);
    }
}
