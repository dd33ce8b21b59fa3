//! Bytes that are no record, and JSON that is kept exactly.

use super::requested;
use crate::record::{read_events, write_events};

#[test]
fn what_is_not_a_record_is_refused_with_the_reason() {
    let event = r#"[{"lease_extended":{"call":1,"lease_end":5"#;
    for (bytes, reason) in [
        (vec![], "it is damaged: it is empty"),
        (vec![9, b'['], "it has the format version 9 and this host reads up to 8; start a newer toolgate"),
        (vec![0, b'['], "it is damaged: no format has the version 0"),
        ([b"\x01", event.as_bytes()].concat(), "it is damaged: EOF while parsing an object"),
        ([b"\x01", event.as_bytes(), b",\"new\":1}}]"].concat(), "it is damaged: unknown field `new`"),
        ([b"\x01", br#"[{"turn_cancelled":{"by":"a b","at":1}}]"#.as_slice()].concat(), r#""a b" is not a principal"#),
        ([b"\x01", br#"[{"call_imagined":{}}]"#.as_slice()].concat(), "unknown variant `call_imagined`"),
    ] {
        let refused = read_events(&bytes).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
    }
}

#[test]
fn json_is_kept_to_the_byte_whatever_it_is() {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    for text in [" {} ", "{\"a\":\"\u{2028}\\ud800\"}", "not json \"\\", &deep] {
        let events = [requested(0, text, None)];
        let mut bytes = Vec::new();
        write_events(&events, &mut bytes).unwrap();
        assert_eq!(read_events(&bytes).unwrap(), events);
    }
}
