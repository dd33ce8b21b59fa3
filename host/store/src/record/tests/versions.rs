//! A record with three versions, as any record can have them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::record::field::{self, Field, Lent};
use crate::record::{Record, Unreadable, Upgrade, from_json, newest};

/// Version 1 had one name, in `name`. Version 2 added `urgent`, which hosts before it did not know. Version 3 has a list of names.
#[derive(Debug, PartialEq)]
struct Alarm {
    names: Vec<String>,
    urgent: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AlarmV1 {
    #[serde(with = "field", default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(with = "field", default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    #[serde(with = "field", default)]
    urgent: bool,
}

impl Field for Alarm {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        AlarmV1 { name: None, names: self.names.clone(), urgent: self.urgent }.serialize(serializer)
    }

    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let AlarmV1 { name, names, urgent } = AlarmV1::deserialize(deserializer)?;
        Ok(Self { names: name.into_iter().chain(names).collect(), urgent })
    }
}

record!(Alarm = [Some(was_urgent), None]);

/// Before version 2, each alarm was urgent.
fn was_urgent(alarm: &mut Alarm) {
    alarm.urgent = true;
}

fn read(version: u8, json: &str) -> Result<Alarm, Unreadable> {
    Record::read(&[&[version], json.as_bytes()].concat())
}

#[test]
fn every_version_is_read_and_the_newest_is_written() {
    let alarm = |urgent| Alarm { names: vec!["ann".into()], urgent };
    let newest = r#"{"names":["ann"],"urgent":true}"#;
    assert_eq!(read(1, r#"{"name":"ann"}"#).unwrap(), alarm(true));
    assert_eq!(read(2, r#"{"name":"ann","urgent":false}"#).unwrap(), alarm(false));
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
        (1, "7"),
        (2, r#"{"name":"ann","name":"bob"}"#),
        (2, r#"{"name":7,"urgent":true}"#),
    ] {
        let refused = read(version, json).unwrap_err();
        assert!(matches!(refused, Unreadable::Damaged(_)), "{version} {json}: {refused}");
    }
}
