//! Checks the intersection of grants and manifest against every request of a small world. The expected result comes
//! from each side alone.

use std::path::PathBuf;

use capabilities::HostPattern;
use capabilities::config::RequestedValue;
use capabilities::filesystem::{Folder, FolderHandle, RequestedFolder};
use capabilities::http::{HttpRule, Reach, RequestedHttp, Scheme};
use capabilities::keyvalue::{KeyValueQuota, RequestedKeyValue};
use capabilities::secrets::{RequestedSecret, Secret, SecretPlace, SecretValue};

use super::*;

const WHY: &str = "for the test";

fn word<T: TryFrom<String, Error = crate::words::InvalidWord>>(text: &str) -> T {
    T::try_from(text.to_owned()).expect("a word")
}

fn wants(url: &str, methods: &[&str]) -> RequestedHttp {
    RequestedHttp { url: word(url), methods: methods.iter().map(|method| word(method)).collect(), why: WHY.into() }
}

fn rule(url: &str, methods: &[&str]) -> HttpRule {
    wants(url, methods).url.rule(&methods.iter().map(|method| word(method)).collect(), Reach::Public)
}

fn granting(http: Vec<HttpRule>) -> Grants {
    Grants { http, ..Grants::default() }
}

fn wanting(http: Vec<RequestedHttp>) -> Manifest {
    Manifest { http, ..Manifest::default() }
}

/// A request: scheme, host, port, path and method.
type Request = (Scheme, &'static str, u16, &'static str, &'static str);

fn allows(rules: &[HttpRule], (scheme, host, port, path, method): Request) -> bool {
    rules.iter().any(|rule| {
        let below = path == rule.path
            || path
                .strip_prefix(rule.path.as_str())
                .is_some_and(|rest| rule.path.ends_with('/') || rest.starts_with('/'));
        (rule.scheme, rule.port) == (scheme, port) && rule.host.matches(host) && below && rule.methods.contains(method)
    })
}

#[test]
fn a_request_must_be_granted_and_requested() {
    let urls = [
        "https://a.example/",
        "https://a.example/v1",
        "https://a.example/v1/",
        "https://a.example/v1/deep",
        "https://a.example/v10",
        "https://*.example/v1",
        "https://*.a.example/",
        "https://x.a.example",
        "https://b.example",
        "http://a.example/",
        "https://a.example:8443/",
    ];
    let methods: [&[&str]; 3] = [&["GET"], &["POST", "GET"], &["PUT"]];
    let mut requests: Vec<Request> = Vec::new();
    for host in ["a.example", "b.example", "x.a.example", "y.x.a.example", "example", "aa.example", "xa.example"] {
        for path in ["/", "/v1", "/v1/", "/v1/deep", "/v1/deeper", "/v10", "/v"] {
            for method in ["GET", "POST", "PUT", "DELETE"] {
                requests.push((Scheme::Https, host, 443, path, method));
            }
        }
        requests.push((Scheme::Http, host, 80, "/v1/deep", "GET"));
        requests.push((Scheme::Https, host, 8443, "/v1/deep", "GET"));
    }
    let mut allowed = 0;
    for granted in urls {
        for wanted in urls {
            for (granting_methods, wanting_methods) in
                methods.iter().flat_map(|g| methods.iter().map(move |w| (*g, *w)))
            {
                // A second rule on each side, so that every pair of rules is compared.
                let granted = granting(vec![rule("https://b.example/v1/", &["PUT"]), rule(granted, granting_methods)]);
                let wanted =
                    wanting(vec![wants(wanted, wanting_methods), wants("https://b.example/", &["PUT", "GET"])]);
                let wanted_rules: Vec<_> = wanted.http.iter().map(|w| w.url.rule(&w.methods, Reach::Public)).collect();
                let both = effective(&granted, Some(&wanted)).http;
                for request in &requests {
                    let expected = allows(&granted.http, *request) && allows(&wanted_rules, *request);
                    assert_eq!(allows(&both, *request), expected, "{request:?}: {granted:?} and {wanted_rules:?}");
                    allowed += usize::from(expected);
                }
            }
        }
    }
    assert!(allowed > 1_000, "{allowed}");
}

#[test]
fn only_the_operator_says_which_addresses_a_name_may_lead_to() {
    let private = HttpRule { reach: Reach::Private, ..rule("https://*.example/", &[]) };
    let wanted = wanting(vec![wants("https://a.example/v1/", &[])]);
    let both = effective(&granting(vec![private.clone()]), Some(&wanted)).http;
    assert_eq!(both, [HttpRule { reach: Reach::Private, ..rule("https://a.example/v1/", &[]) }]);
    let public = HttpRule { reach: Reach::Public, ..private };
    assert_eq!(effective(&granting(vec![public]), Some(&wanted)).http[0].reach, Reach::Public);
}

fn secret(name: &str, hosts: &[&str], places: &[SecretPlace]) -> Secret {
    Secret {
        name: name.into(),
        value: SecretValue::new("a value of a secret").expect("a secret"),
        hosts: hosts.iter().map(|host| host.parse().expect("a host")).collect(),
        places: places.to_vec(),
    }
}

fn wanted_secret(name: &str, hosts: &[&str], places: &[&str]) -> RequestedSecret {
    RequestedSecret {
        name: word(name),
        hosts: hosts.iter().map(|host| word(host)).collect(),
        places: places.iter().map(|place| word(place)).collect(),
        why: WHY.into(),
    }
}

#[test]
fn a_secret_goes_where_it_is_granted_and_wanted() {
    let header = || SecretPlace::Header("authorization".into());
    let granted = secret("token", &["*.example", "b.test"], &[header(), SecretPlace::Query("key".into())]);
    for (name, hosts, places, expected) in [
        ("token", &["a.example"][..], &["header:authorization"][..], Some((&["a.example"][..], 1))),
        ("token", &["*.test", "c.d"], &["query:key", "header:authorization"], Some((&["b.test"], 2))),
        ("token", &["*.a.example", "b.test"], &["header:authorization"], Some((&["*.a.example", "b.test"], 1))),
        ("token", &["example"], &["header:authorization"], None),
        ("token", &["a.example"], &["header:x-key", "body:/key"], None),
        ("other", &["a.example"], &["header:authorization"], None),
    ] {
        let wanted = Manifest { secrets: vec![wanted_secret(name, hosts, places)], ..Manifest::default() };
        let granted = Grants { secrets: vec![granted.clone()], ..Grants::default() };
        let both = effective(&granted, Some(&wanted)).secrets;
        let found = both.first().map(|secret| (secret.hosts.clone(), secret.places.len()));
        let expected = expected.map(|(hosts, places)| {
            let mut hosts: Vec<HostPattern> = hosts.iter().map(|host| host.parse().expect("a host")).collect();
            hosts.sort();
            (hosts, places)
        });
        let found = found.map(|(mut hosts, places)| {
            hosts.sort();
            (hosts, places)
        });
        assert_eq!(found, expected, "{name} {hosts:?} {places:?}");
    }
}

/// Grants of every kind except HTTP and secrets, and a manifest for them.
fn everything() -> (Grants, Manifest) {
    let folder =
        |at: &str, write| Folder { path: PathBuf::from("/srv"), at: at.into(), write, handle: FolderHandle::default() };
    let granted = Grants {
        keyvalue: Some(KeyValueQuota { bytes: 100, keys: 10 }),
        config: Some([("region", "eu"), ("spare", "x")].map(|(n, v)| (n.to_owned(), v.to_owned())).into()),
        folders: vec![folder("/data", true), folder("/read", false), folder("/spare", true)],
        ..Grants::default()
    };
    let value = |name: &str| RequestedValue { name: word(name), why: WHY.into() };
    let want = |at: &str, write| RequestedFolder { at: word(at), write, why: WHY.into() };
    let wanted = Manifest {
        keyvalue: Some(RequestedKeyValue { bytes: Some(1_000), keys: Some(5), why: WHY.into() }),
        config: vec![value("region"), value("tenant")],
        folders: vec![want("/data", false), want("/read", true), want("/lost", true)],
        ..Manifest::default()
    };
    (granted, wanted)
}

#[test]
fn the_smaller_of_grant_and_request_counts() {
    let (granted, wanted) = everything();
    let both = effective(&granted, Some(&wanted));
    assert_eq!(both.keyvalue, Some(KeyValueQuota { bytes: 100, keys: 5 }));
    assert_eq!(both.config, Some([("region".to_owned(), "eu".to_owned())].into()));
    let folders: Vec<_> = both.folders.iter().map(|folder| (folder.at.as_str(), folder.write)).collect();
    assert_eq!(folders, [("/data", false), ("/read", false)]);
    assert_eq!(effective(&granted, None), granted, "no manifest");
    assert_eq!(effective(&granted, Some(&Manifest::default())), Grants::default(), "an empty manifest");
    assert_eq!(effective(&Grants::default(), Some(&wanted)), Grants::default(), "no grants");
}

#[test]
fn missing_and_surplus_grants_are_listed() {
    let (mut granted, mut wanted) = everything();
    granted.http = vec![rule("https://a.example/v1/", &["GET"]), rule("https://b.example/", &[])];
    granted.secrets = vec![secret("token", &["a.example"], &[SecretPlace::Query("key".into())])];
    wanted.http = vec![wants("https://a.example/", &["GET", "POST"]), wants("https://a.example/v1/x", &["GET"])];
    wanted.secrets = vec![wanted_secret("token", &["a.example"], &["query:key"])];
    let access = |granted: Grants, is_holder| Access {
        holder: GrantHolder::AnyComponent,
        manifest: Some(wanted.clone()),
        effective: effective(&granted, Some(&wanted)),
        granted,
        is_holder,
    };
    let access_here = access(granted.clone(), true);
    let standing: Vec<_> =
        access_here.requested().into_iter().map(|wanted| (wanted.what, wanted.state.as_str())).collect();
    let standing: Vec<_> = standing.iter().map(|(what, standing)| (what.as_str(), *standing)).collect();
    assert_eq!(
        standing,
        [
            ("keyvalue: up to 1000 bytes in 5 keys", "in part"),
            ("http: GET,POST https://a.example:443/", "in part"),
            ("http: GET https://a.example:443/v1/x", "granted"),
            ("config: region", "granted"),
            ("config: tenant", "missing"),
            ("folder: /data, read only", "granted"),
            ("folder: /read, read and write", "in part"),
            ("folder: /lost, read and write", "missing"),
            ("secret: token, to a.example, in query:key", "granted"),
        ]
    );
    assert_eq!(
        access_here.surplus(),
        ["http: GET,HEAD https://b.example:443/", "config: spare", "folder: /spare, read and write, which is /srv"]
    );
    let other = access(granted, false);
    assert!(other.requested().iter().all(|wanted| wanted.state == GrantState::Missing));
    assert_eq!(other.withheld(), effective(&other.granted, Some(&wanted)));
    assert_eq!(access_here.withheld(), Grants::default());
    assert_eq!(access_here.of_begun(), access_here.effective);
    let replaced = Access { effective: Grants::default(), ..other };
    let secrets = replaced.withheld().secrets;
    assert!(!secrets.is_empty());
    let redacted = secrets.into_iter().map(|secret| Secret { hosts: vec![], places: vec![], ..secret }).collect();
    assert_eq!(replaced.of_begun(), Grants { secrets: redacted, ..Grants::default() });
}

#[test]
fn words_show_no_value() {
    let granted = Grants {
        config: Some([("region".to_owned(), "a value of the operator".to_owned())].into()),
        secrets: vec![secret("token", &["a.example"], &[SecretPlace::Header("x-key".into())])],
        ..Grants::default()
    };
    assert_eq!(words(&granted), ["config: region", "secret: token, to a.example, in header:x-key"]);
    let digest = Digest::of("a value of the operator");
    let recorded = recorded(&granted);
    assert_eq!(recorded, [format!("config: region = {digest}"), "secret: token, to a.example, in header:x-key".into()]);
}

#[test]
fn a_manifest_says_what_for_and_nothing_twice() {
    let (_, fine) = everything();
    assert_eq!(fine.check(), Ok(()));
    type Change = fn(&mut Manifest);
    let cases: [(&str, Change); 7] = [
        ("config: region has no `why`; add the reason, which the operator reads", |m| {
            m.config[0].why = " \n".into();
        }),
        ("the `why` of config: region has more than 500 characters", |m| m.config[0].why = "x".repeat(501)),
        ("it requests more than 64 of one kind: http", |m| m.http = vec![wants("https://a.example", &[]); 65]),
        ("it requests `tenant` twice; remove one of the requests", |m| m.config[0].name = m.config[1].name.clone()),
        ("it requests `tenant` twice; remove one of the requests", |m| {
            m.secrets = vec![wanted_secret("tenant", &["a.b"], &["query:k"])]
        }),
        ("it requests the folder /read twice; remove one of the requests", |m| {
            m.folders[0].at = m.folders[1].at.clone()
        }),
        ("the request for the secret `token` names no host or no place in a request", |m| {
            m.secrets = vec![wanted_secret("token", &["a.b"], &[])];
        }),
    ];
    for (expected, change) in cases {
        let mut manifest = fine.clone();
        change(&mut manifest);
        assert_eq!(manifest.check().expect_err("is refused").to_string(), expected);
    }
}
