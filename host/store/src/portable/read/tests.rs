//! Lines that no host writes.

use super::*;
use crate::portable::bounds::{MAX_COMPONENT, MAX_COMPONENT_RECORD, MAX_DOCUMENT};

fn first() -> String {
    format!("{{\"store\":{{\"format\":1,\"position\":0,\"hash\":\"{}\"}}}}\n", Head::START.hash)
}

/// The error of a line after the first one.
fn refused(second: &mut dyn BufRead) -> String {
    let first = first();
    let mut input = first.as_bytes().chain(second);
    LineReader::begin(&mut input, 100_000).unwrap().next().map(drop).unwrap_err().to_string()
}

#[test]
fn line_that_is_longer_than_its_kind_is_refused() {
    for (kind, max) in [
        ("retention_time", 4_096),
        ("owner", 4_096),
        ("call", 4_096),
        ("denial", 4_096),
        ("journal", 4_096),
        ("end", 4_096),
        ("value", 2 * (2 * (2 + 255) + 1_024 + (64 << 10)) + 4_096),
        ("document", 2 * MAX_DOCUMENT + 4_096),
        ("component", 2 * (MAX_COMPONENT + MAX_COMPONENT_RECORD) + 4_096),
    ] {
        let expected =
            format!("line 2 is too long: no toolgate writes a line of the kind `{kind}` with more than {max} bytes");
        let begin = format!("{{\"{kind}\":");
        // Without an end. The whole of it would fill the memory.
        assert_eq!(refused(&mut begin.as_bytes().chain(std::io::BufReader::new(std::io::repeat(b'x')))), expected);
    }
    for kind in ["commit", "suspension", "ended_turn", "standing", "delivery", "run_log", "journal_entry"] {
        let line = |size: usize| format!("{{\"{kind}\":{}\n", "x".repeat(size - kind.len() - 5));
        let expected =
            "line 2 is too long: it has a record of more than 100000 bytes, and this import takes no larger one";
        assert_eq!(refused(&mut line(104_097).as_bytes()), expected, "{kind}");
        assert!(refused(&mut line(104_096).as_bytes()).starts_with("line 2 is damaged: expected value"), "{kind}");
    }
}

#[test]
fn line_of_an_unknown_kind_is_not_read_to_its_end() {
    let expected = |begin: &str| format!("line 2 is damaged: no kind of line begins with `{begin}`");
    let endless = || std::io::BufReader::new(std::io::repeat(b'x'));
    assert_eq!(refused(&mut b"{\"comet\":".chain(endless())), expected("{\"comet\":"));
    assert_eq!(refused(&mut endless()), expected(&"x".repeat(24)));
    assert_eq!(refused(&mut b"nonsense\n".as_slice()), expected("nonsense"));
    assert_eq!(refused(&mut b"{}\n".as_slice()), expected("{}"));
    for cut in ["x", "{\"com", "{\"commit\":", "{\"commit\":{"] {
        assert!(refused(&mut cut.as_bytes()).contains("it was cut off"), "{cut}");
    }
}

#[test]
fn unknown_document_is_refused_at_once() {
    let document = |name: &str| format!("{{\"document\":{{\"name\":\"{name}\",\"body\":\"\"}}}}\n");
    let unknown = refused(&mut document("keys").as_bytes());
    assert_eq!(unknown, "line 2 is of a newer toolgate: it has the document `keys`, which this toolgate does not know");
    assert_eq!(refused(&mut document(&"ü".repeat(1_000)).as_bytes()).len(), 230, "only the beginning of the name");
}

#[test]
fn value_that_no_plugin_can_write_is_refused() {
    let value = |key: &str, size: usize| {
        let value = "00".repeat(size);
        format!("{{\"value\":{{\"key\":\"{key}\",\"value\":\"{value}\"}}}}\n")
    };
    let whole = "000170".to_owned() + "000162" + &"00".repeat(1 << 10);
    for (key, size) in [
        (whole.as_str(), 65_537),
        (&(whole.clone() + "00"), 1),
        ("", 1),
        ("00", 1),
        ("00017000", 1),
        ("0001700002", 1),
        (&("0100".to_owned() + &"70".repeat(256) + "0000"), 1),
    ] {
        let line = value(key, size);
        assert_eq!(
            refused(&mut line.as_bytes()),
            "line 2 is damaged: no plugin can write its key or its value",
            "{key}"
        );
    }
    let text = [first(), value(&whole, 65_536)].concat();
    let mut input = text.as_bytes();
    assert!(LineReader::begin(&mut input, 1).unwrap().next().unwrap().is_some());
}

/// The errors of the lines after the first one, of which the last alone is refused.
fn last_refused(lines: &[String]) -> String {
    let text = [first(), lines.concat()].concat();
    let mut input = text.as_bytes();
    let mut read = LineReader::begin(&mut input, 1_000).unwrap();
    for _ in 1..lines.len() {
        assert!(read.next().unwrap().is_some());
    }
    read.next().map(drop).unwrap_err().to_string()
}

#[test]
fn second_commit_of_a_position_is_refused() {
    let commit = |position: u64| {
        let hash = Head::START.hash;
        let content = format!("{{\"removed\":{{\"digest\":\"{hash}\",\"by\":9}}}}");
        format!(
            "{{\"commit\":{{\"position\":{position},\"hash\":\"{hash}\",\"source\":\"plugin\",\"content\":{content}}}}}\n"
        )
    };
    for (positions, expected) in [
        (vec![2], "line 2 is damaged: its position is 2, and the commit before it has 0"),
        (vec![1, 1], "line 3 is damaged: its position is 1, and the commit before it has 1"),
        (
            vec![1, 2, u64::MAX],
            "line 4 is damaged: its position is 18446744073709551615, and the commit before it has 2",
        ),
    ] {
        let lines: Vec<_> = positions.into_iter().map(commit).collect();
        assert_eq!(last_refused(&lines), expected);
    }
}

#[test]
fn line_that_is_not_in_the_order_of_kinds_is_refused() {
    let owner = "{\"owner\":{\"conversation\":\"c\",\"owner\":\"ann\"}}\n".to_owned();
    let time = "{\"retention_time\":{\"at\":1}}\n".to_owned();
    let expected = |kind: &str| format!("line 3 is damaged: a line of the kind `{kind}` comes too late");
    assert_eq!(last_refused(&[owner.clone(), time]), expected("retention_time"));
    assert_eq!(last_refused(&[owner, first()]), expected("store"));
}

#[test]
fn record_with_too_many_values_is_refused_unread() {
    let tools = |number: usize| format!("[{}]", vec!["\"\""; number].join(","));
    let ended = |version: u8, number| {
        let json = golden("row_ended").replace("[\"balance\",\"transfer\"]", &tools(number));
        ended(&stored(version, &json))
    };
    let refused = |line: String| {
        let text = [first(), line].concat();
        let mut input = text.as_bytes();
        LineReader::begin(&mut input, 1_000).unwrap().next().map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(refused(ended(1, 20)), Ok(()));
    assert!(refused(ended(200, 20)).unwrap_err().starts_with("line 2 is of a newer toolgate"));
    let expected = "line 2 has too many values: its record takes more than 4000 bytes of memory, and this import takes no \
        more of one record";
    assert_eq!(refused(ended(200, 30)).unwrap_err(), expected);
}

/// The JSON of a golden record.
fn golden(name: &str) -> String {
    let path = format!("{}/tests/golden/v1/{name}.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().trim_end().to_owned()
}

fn stored(version: u8, json: &str) -> String {
    format!("{{\"version\":{version},\"json\":{json}}}")
}

fn line(kind: &str, content: &str) -> String {
    format!("{{\"{kind}\":{content}}}\n")
}

fn ended(record: &str) -> String {
    line("ended_turn", &format!("{{\"end\":\"settled\",\"bytes\":1,\"record\":{record}}}"))
}

/// Each kind, the content of its lines with a place for a key, two keys in their order, and what an error calls the first one.
type Ordered = (&'static str, &'static str, [&'static str; 2], &'static str);

/// A name between `@` is that of a golden record, which has the first key.
const ORDERED: [Ordered; 14] = [
    ("retention_time", r#"{"at":KEY}"#, ["1", "1"], "the time of retention"),
    ("owner", r#"{"conversation":"KEY","owner":"ann"}"#, ["aa", "b"], "the owner of the conversation `aa`"),
    (
        "call",
        r#"{"conversation":"KEY","id":"x","turn":"turn_01935a7c000070008000000000000001"}"#,
        ["b", "aa"],
        "the call id `x` of the conversation `b`",
    ),
    ("suspension", "@row_suspension@", ["002\"", "003\""], "the suspension susp_01935a7c000070008000000000000002"),
    (
        "ended_turn",
        r#"{"end":"settled","bytes":1,"record":@row_ended@}"#,
        ["\"at\":8", "\"at\":9"],
        "the end of turn_01935a7c000070008000000000000001",
    ),
    (
        "standing",
        r#"{"used":0,"record":@row_standing@}"#,
        ["004\"", "005\""],
        "the standing approval standing_01935a7c000070008000000000000004",
    ),
    (
        "denial",
        r#"{"conversation":"c","alike":"sha256:KEY00000000000000000000000000000000000000000000000000000000000000","at":1}"#,
        ["00", "11"],
        "a denial in the conversation `c`",
    ),
    ("delivery", "@row_delivery@", ["pager", "pages"], "a delivery to the webhook `pager`"),
    (
        "run_log",
        "@row_run_log@",
        ["\"run\":2", "\"run\":3"],
        "the log of run 2 of call 1 of turn_01935a7c000070008000000000000001",
    ),
    (
        "journal",
        r#"{"turn":"turn_01935a7c000070008000000000000001","call":KEY,"length":0}"#,
        ["1", "2"],
        "the journal of call 1 of turn_01935a7c000070008000000000000001",
    ),
    (
        "journal_entry",
        r#"{"turn":"turn_01935a7c000070008000000000000001","call":1,"record":@row_journal_result@}"#,
        ["\"number\":7", "\"number\":8"],
        "entry 7 of the journal of call 1 of turn_01935a7c000070008000000000000001",
    ),
    ("value", r#"{"key":"000170000162KEY","value":"00"}"#, ["00", "01"], "the value with the key 00017000016200"),
    ("document", r#"{"name":"KEY","body":""}"#, ["ended-sessions", "tokens"], "the document `ended-sessions`"),
    (
        "component",
        r#"{"digest":"sha256:KEY","record":""}"#,
        [
            "4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a\",\"bytes\":\"01",
            "dbc1b4c900ffe48d575b5da5c638040125f65db0fe3e24494b76ea986457d986\",\"bytes\":\"02",
        ],
        "the component sha256:4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a",
    ),
];

#[test]
fn line_with_a_repeated_key_is_refused() {
    for (kind, content, keys, key) in ORDERED {
        let content = match content.split('@').nth(1) {
            Some(name) => content.replace(&format!("@{name}@"), &stored(1, &golden(name)).replace(keys[0], "KEY")),
            None => content.to_owned(),
        };
        let [one, other] = keys.map(|key| line(kind, &content.replace("KEY", key)));
        let repeats = format!("line 3 is damaged: it repeats {key}");
        assert_eq!(last_refused(&[one.clone(), one.clone()]), repeats);
        if one != other {
            let late = format!("line 4 is damaged: {key} is there twice, or not in the order of the lines");
            assert_eq!(last_refused(&[one.clone(), other, one]), late);
        }
    }
}
