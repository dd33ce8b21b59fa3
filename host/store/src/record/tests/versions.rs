//! A record with three versions, as any record can have them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};

use crate::record::field::{Field, Lent, Stored};
use crate::record::{Record, Unreadable, Upgrade, from_json, newest};

/// Version 1 had one name, in `name`. Version 2 added `urgent`, and version 3 has a list of names.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Alarm {
    names: Vec<String>,
    urgent: bool,
}

impl Field for Alarm {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::deserialize(deserializer)
    }
}

record!(Alarm = [Some(with_urgency), Some(with_names)]);

fn with_urgency(alarm: &mut Value) {
    if let Some(alarm) = alarm.as_object_mut() {
        alarm.insert("urgent".into(), false.into());
    }
}

fn with_names(alarm: &mut Value) {
    if let Some(alarm) = alarm.as_object_mut()
        && let Some(name) = alarm.remove("name")
    {
        alarm.insert("names".into(), json!([name]));
    }
}

fn read(version: u8, json: &str) -> Result<Alarm, Unreadable> {
    Record::read(&[&[version], json.as_bytes()].concat())
}

#[test]
fn every_version_is_read_and_the_newest_is_written() {
    let alarm = |urgent| Alarm { names: vec!["ann".into()], urgent };
    let newest = r#"{"names":["ann"],"urgent":true}"#;
    assert_eq!(read(1, r#"{"name":"ann"}"#).unwrap(), alarm(false));
    assert_eq!(read(2, r#"{"name":"ann","urgent":true}"#).unwrap(), alarm(true));
    assert_eq!(read(3, newest).unwrap(), alarm(true));
    let mut written = Vec::new();
    Record::write(&alarm(true), &mut written).unwrap();
    assert_eq!(written, [b"\x03", newest.as_bytes()].concat());
}

#[test]
fn a_newer_version_is_refused_and_not_called_damaged() {
    assert_eq!(read(4, "{}").unwrap_err(), Unreadable::Newer { found: 4, known: 3 });
}

#[test]
fn an_older_record_that_was_never_written_so_is_damaged() {
    for (version, json) in [
        (0, r#"{"name":"ann"}"#),
        (1, r#"{"names":["ann"],"other":1}"#),
        (1, r#"{"name":"ann"#),
        (1, "[]"),
        (2, r#"{"name":"ann"}"#),
        (2, r#"{"name":7,"urgent":true}"#),
    ] {
        let refused = read(version, json).unwrap_err();
        assert!(matches!(refused, Unreadable::Damaged(_)), "{version} {json}: {refused}");
    }
}
