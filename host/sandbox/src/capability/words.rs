//! Grants in words, one line each: what the audit keeps, and what tells two configurations apart.

use domain::Digest;

use super::Grants;
use super::http::Reach;
use super::secrets::SecretPlace;

impl Grants {
    /// Every grant as a line. Values of the configuration are given by their digests and secrets by their names alone: what
    /// is written down with the log can be read by whoever reads that.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        words.extend(self.keyvalue.map(|quota| format!("keyvalue: {} bytes, {} keys", quota.bytes, quota.keys)));
        words.extend(self.http.iter().map(|rule| {
            let reach = if rule.reach == Reach::Private { ", private addresses, too" } else { "" };
            format!("http: {rule}{reach}")
        }));
        let config = self.config.iter().flatten();
        words.extend(config.map(|(name, value)| format!("config: {name} = {}", Digest::of(value))));
        words.extend(self.folders.iter().map(|folder| {
            let access = if folder.write { "read and write" } else { "read" };
            format!("folder: {} as {}, {access}", folder.path.display(), folder.at)
        }));
        words.extend(self.secrets.iter().map(|secret| {
            let hosts: Vec<_> = secret.hosts.iter().map(|host| host.as_str()).collect();
            let places: Vec<_> = secret.places.iter().map(place).collect();
            format!("secret: {} to {} in {}", secret.name, hosts.join(", "), places.join(", "))
        }));
        words
    }
}

fn place(place: &SecretPlace) -> String {
    match place {
        SecretPlace::Header(name) => format!("header {name}"),
        SecretPlace::Query(name) => format!("query {name}"),
        SecretPlace::Body(pointer) => format!("body {pointer}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::filesystem::Folder;
    use super::super::http::HttpRule;
    use super::super::keyvalue::Quota;
    use super::super::secrets::{Secret, SecretValue};
    use super::*;

    #[test]
    fn every_grant_is_a_line_and_no_value_is_in_it() {
        assert_eq!(Grants::default().words(), Vec::<String>::new());
        let methods = ["GET", "POST"].map(str::to_owned).into();
        let grants = Grants {
            keyvalue: Some(Quota { bytes: 1, keys: 2 }),
            http: vec![HttpRule::parse("https://api.example.com/v1/", methods, Reach::Private).unwrap()],
            config: Some(BTreeMap::from([("region".to_owned(), "hidden".to_owned())])),
            folders: vec![Folder { path: "/srv/notes".into(), at: "/data".into(), write: true }],
            secrets: vec![Secret {
                name: "key".into(),
                value: SecretValue::new("hidden and long enough").unwrap(),
                hosts: vec!["*.example.com".parse().unwrap()],
                places: vec![SecretPlace::Header("authorization".into()), SecretPlace::Body("/key".into())],
            }],
        };
        let expected = [
            "keyvalue: 1 bytes, 2 keys".to_owned(),
            "http: GET,POST https://api.example.com:443/v1/, private addresses, too".into(),
            format!("config: region = {}", Digest::of("hidden")),
            "folder: /srv/notes as /data, read and write".into(),
            "secret: key to *.example.com in header authorization, body /key".into(),
        ];
        assert_eq!(grants.words(), expected);
        assert!(!grants.words().concat().contains("hidden"));
    }
}
