//! A placeholder becomes its value only at a granted place, and an echo of the value is redacted.

use domain::{PluginName, json::MAX_DEPTH};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use proptest::prelude::*;

use super::*;

const KEY: &str = "s3cr3t/K+y=\"ü&";
const ALONE_IN_BODY: &str = "body:/auth/0/k~1y has other text beside the placeholder of a secret; send the placeholder alone, or in a header after a scheme such as `Bearer`";
const HOME: Destination<'_> = Destination { host: "api.example.com", is_confidential: true };

fn vault() -> Vault {
    vault_of("call-1")
}

fn vault_of(call: &str) -> Vault {
    let secret = |name: &str, value: &str, places: &[SecretPlace]| Secret {
        name: name.into(),
        value: SecretValue::new(value).expect("a value"),
        hosts: vec!["*.example.com".parse().expect("a host")],
        places: places.to_vec(),
    };
    let header = SecretPlace::Header("authorization".into());
    let secrets = vec![
        secret(
            "KEY",
            KEY,
            &[header.clone(), SecretPlace::Query("key".into()), SecretPlace::Body("/auth/0/k~1y".into())],
        ),
        secret("OTHER", "another-secret", &[header, SecretPlace::Body("/form".into())]),
    ];
    Vault::new(&PluginName::new("p").expect("a name"), call, &secrets)
}

/// The placeholder of a secret.
fn of(vault: &Vault, name: &str) -> String {
    vault.placeholders().find(|(known, _)| *known == name).expect("a secret").1.to_owned()
}

/// Sends a request's head. `KEY` and `OTHER` are replaced by their placeholders.
fn send(to: Destination<'_>, uri: &str, header: Option<(&str, &str)>) -> Result<(String, String), Misplaced> {
    let vault = vault();
    let put = |text: &str| text.replace("KEY", &of(&vault, "KEY")).replace("OTHER", &of(&vault, "OTHER"));
    let mut uri: Uri = put(uri).parse().expect("a URI");
    let mut headers = HeaderMap::new();
    if let Some((name, value)) = header {
        let name: HeaderName = name.parse().expect("a name");
        headers.insert(name, HeaderValue::try_from(put(value)).expect("a value"));
    }
    vault.fill_head(to, &mut uri, &mut headers)?;
    let value = headers.values().next().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Ok((uri.to_string(), value.unwrap_or_default()))
}

fn refused(sent: Result<(String, String), Misplaced>) -> String {
    sent.expect_err("refused").to_string()
}

#[test]
fn secret_is_filled_in_at_the_granted_places() {
    let (_, header) = send(HOME, "https://h/", Some(("Authorization", "Bearer KEY"))).expect("sent");
    assert_eq!(header, format!("Bearer {KEY}"));
    let (_, header) = send(HOME, "https://h/", Some(("authorization", "Token token=OTHER"))).expect("sent");
    assert_eq!(header, "Token token=another-secret");
    let (uri, _) = send(HOME, "https://h/a?x=1&key=KEY&y", None).expect("sent");
    assert_eq!(uri, "https://h/a?x=1&key=s3cr3t%2FK%2By%3D%22%C3%BC%26&y");
}

#[test]
fn secret_is_filled_into_encoded_basic_credentials() {
    let vault = vault();
    let credentials =
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("user:{}", of(&vault, "OTHER")));
    let value = HeaderValue::try_from(format!("basic {credentials}")).expect("a value");
    let mut headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, value)]);
    vault.fill_head(HOME, &mut Uri::from_static("https://h/"), &mut headers).expect("sent");
    assert_eq!(headers["authorization"], "Basic dXNlcjphbm90aGVyLXNlY3JldA==");
    assert!(headers["authorization"].is_sensitive(), "no log of a library shows it");
}

#[test]
fn placeholder_at_another_place_refuses_the_request() {
    let away = Destination { host: "evil.com", ..HOME };
    let suffix = Destination { host: "notexample.com", ..HOME };
    let clear = Destination { is_confidential: false, ..HOME };
    let bearer = Some(("authorization", "Bearer KEY"));
    for (sent, expected) in [
        (
            send(away, "https://h/", bearer),
            "the secret KEY is not granted for header:authorization of requests to evil.com",
        ),
        (
            send(suffix, "https://h/", bearer),
            "the secret KEY is not granted for header:authorization of requests to notexample.com",
        ),
        (
            send(clear, "http://h/", bearer),
            "the secret KEY cannot be sent over plain HTTP; use https, or set `private = true` in the rule",
        ),
        (
            send(HOME, "https://h/", Some(("x-key", "KEY"))),
            "the secret KEY is not granted for header:x-key of requests to api.example.com",
        ),
        (
            send(HOME, "https://h/KEY", None),
            "the secret KEY is not granted for the path of requests to api.example.com",
        ),
        (
            send(HOME, "https://h/?other=KEY", None),
            "the secret KEY is not granted for query:other of requests to api.example.com",
        ),
        (
            send(HOME, "https://h/?key=OTHER", None),
            "the secret OTHER is not granted for query:key of requests to api.example.com",
        ),
        (
            send(HOME, "https://h/?key=KEY&k%65y=x", None),
            "query:key occurs more than once in this request; a secret must be its only value",
        ),
        (
            send(HOME, "https://h/?KEY=1", None),
            "the secret KEY is not granted for a parameter's name of requests to api.example.com",
        ),
        (
            send(HOME, "https://h/?key=toolgate-secret-0", None),
            "query:key has a placeholder that is not from this call; read the configuration in each call",
        ),
        (
            send(HOME, "https://h/?key=toolgate%2Dsecret%2D0", None),
            "query:key has a placeholder that is not from this call; read the configuration in each call",
        ),
    ] {
        assert_eq!(refused(sent), expected);
    }
}

#[test]
fn header_with_a_secret_occurs_once() {
    let vault = vault();
    let mut headers = HeaderMap::new();
    for value in [of(&vault, "KEY"), "Basic dTpw".to_owned()] {
        headers.append(http::header::AUTHORIZATION, HeaderValue::try_from(value).expect("a value"));
    }
    let sent = vault.fill_head(HOME, &mut Uri::from_static("https://h/"), &mut headers);
    assert_eq!(sent, Err(Misplaced::Twice { place: "header:authorization".into() }));
}

#[test]
fn secret_must_be_the_whole_value_of_its_place() {
    let long = format!("{}KEY", "x".repeat(65));
    for (uri, header) in [
        ("https://h/", Some(("authorization", long.as_str()))),
        ("https://h/", Some(("authorization", "KEY:OTHER"))),
        ("https://h/?key=1KEY", None),
        ("https://h/?key=KEY1", None),
    ] {
        let place = if header.is_some() { "header:authorization" } else { "query:key" };
        assert_eq!(send(HOME, uri, header), Err(Misplaced::NotAlone { place: place.into() }), "{uri} {header:?}");
    }
}

#[test]
fn placeholder_is_valid_in_one_call_only() {
    let (one, other) = (of(&vault(), "KEY"), of(&vault_of("call-2"), "KEY"));
    assert_ne!(one, other);
    assert_eq!(one, of(&vault(), "KEY"), "the same at every attempt");
    let value = HeaderValue::try_from(other).expect("a value");
    let mut headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, value)]);
    let sent = vault().fill_head(HOME, &mut Uri::from_static("https://h/"), &mut headers);
    assert_eq!(sent, Err(Misplaced::Unknown { place: "header:authorization".into() }));
}

fn body(kind: &str, text: &str) -> Result<String, String> {
    let vault = vault();
    let text = text.replace("KEY", &of(&vault, "KEY")).replace("OTHER", &of(&vault, "OTHER"));
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::try_from(kind).expect("a value"))]);
    let filled = vault.fill_body(HOME, &headers, text.into_bytes()).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(filled).expect("text"))
}

#[test]
fn secrets_are_filled_into_bodies_at_their_pointers() {
    let json = "application/json; charset=utf-8";
    let deep = format!(r#"{{"auth":[{{"k/y":"KEY"}}],"x":{}{}}}"#, "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    let filled = body(json, r#"{ "auth":[{"k/y":"KEY"}], "n":123456789012345678901}"#).expect("sent");
    let value: serde_json::Value = serde_json::from_str(&filled).expect("JSON");
    assert_eq!(value["auth"][0]["k/y"], KEY);
    assert!(filled.contains(" \"n\":123456789012345678901"), "the rest is as it was written: {filled}");
    assert_eq!(body("application/x-www-form-urlencoded", "a=b&form=OTHER"), Ok("a=b&form=another%2Dsecret".into()));
    assert_eq!(body("text/plain", "nothing of it"), Ok("nothing of it".into()));
    for (kind, text, expected) in [
        (json, r#"{"auth":["KEY"]}"#, "the secret KEY is not granted for body:/auth/0 of requests to api.example.com"),
        (json, r#"{"KEY":1}"#, "the secret KEY is not granted for a member's name of requests to api.example.com"),
        (json, r#"{"auth":[{"k/y":"x KEY"}]}"#, ALONE_IN_BODY),
        (json, r#"{"auth":[{"k/y":"KEY","k/y":"KEY"}]}"#, "no secret can be put into a body that has a duplicate key"),
        // The number of placeholders is right, but one is in a forbidden member that some parsers would read.
        (
            json,
            r#"{"note":"KEY","note":"x","auth":[{"k/y":"\u0074oolgate-secret-"}]}"#,
            "no secret can be put into a body that has a duplicate key",
        ),
        (
            json,
            &format!(r#"{{"auth":[{{"k/y":"KEY"}},{{"k/y":"\u0074{}"}}]}}"#, &of(&vault(), "KEY")[1..]),
            "the secret KEY is not granted for body:/auth/1/k~1y of requests to api.example.com",
        ),
        (
            "application/x-www-form-urlencoded",
            "form=OTHER&a=b&f%6frm=OTHER",
            "body:/form occurs more than once in this request; a secret must be its only value",
        ),
        (json, "KEY", "no secret can be put into a body that is not what its content-type says"),
        (json, &deep, "no secret can be put into a body that is not what its content-type says"),
        ("text/plain", "KEY", "no secret can be put into a body that is neither JSON nor a form"),
    ] {
        assert_eq!(body(kind, text), Err(expected.into()), "{text}");
    }
    let headers = ["application/json", "application/x-www-form-urlencoded"]
        .map(|kind| (http::header::CONTENT_TYPE, HeaderValue::from_static(kind)));
    let mut several = HeaderMap::new();
    for (name, value) in headers {
        several.append(name, value);
    }
    let sent = vault().fill_body(HOME, &several, of(&vault(), "KEY").into_bytes());
    assert_eq!(sent, Err(Misplaced::Malformed("a body of no type, or of several")));
    assert!(vault().reads_bodies(HOME.host));
    assert!(!vault().reads_bodies("evil.com"));
}

#[test]
fn an_echo_is_redacted_in_every_form() {
    let vault = vault();
    let json = serde_json::json!({ "key": KEY }).to_string();
    let base64 = |text: String| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, text);
    for echo in [
        KEY.to_owned(),
        format!("invalid key {KEY}!"),
        json.clone(),
        json.replace('/', "\\/").replace('ü', "\\u00fc"),
        "?key=s3cr3t%2FK%2By%3D%22%C3%BC%26".into(),
        "?key=s3cr3t%2fK%2by%3d%22%c3%bc%26".into(),
        "?key=s3cr3t/K%2By=%22%C3%BC%26".into(),
        "s3cr3t/K+y=&quot;ü&amp;".into(),
        KEY.bytes().map(|byte| format!("{byte:02x}")).collect(),
        KEY.bytes().map(|byte| format!("{byte:02X}")).collect(),
        // As .NET, Go, JavaScript and Python write it, and encoded twice.
        r#"{"k":"s3cr3t/K\u002By=\u0022\u00FC\u0026"}"#.into(),
        r#"{"k":"s3cr3t/K+y=\"ü\u0026"}"#.into(),
        "s3cr3t/K&#43;y=&#34;ü&amp;".into(),
        "s3cr3t/K%2By%3D%22%C3%BC%26".into(),
        r#"{"in":"{\"k\":\"s3cr3t/K+y=\\\"ü&\"}"}"#.into(),
        "s3cr3t%252FK%252By%253D%2522%25C3%25BC%2526".into(),
        "s3cr3t/K+y=&amp;quot;ü&amp;amp;".into(),
        base64(KEY.into()),
        base64(format!("u:{KEY}")),
        base64(format!("us:{KEY}tail")),
        base64(format!("use:{KEY}:more")),
        base64(KEY.into()).replace('+', "%2B").replace('/', "%2F"),
        base64(KEY.into()).replace('/', "\\/").replace('+', "\\u002b"),
    ] {
        let redacted = vault.redacted(echo.clone());
        assert!(redacted.contains("[secret KEY]"), "{echo} became {redacted}");
        assert!(!redacted.contains("cr3t") && !redacted.contains("3372"), "{echo} became {redacted}");
    }
    assert_eq!(vault.redacted("nothing of it".into()), "nothing of it");
    let redacted = vault.redacted(json);
    assert!(serde_json::from_str::<serde_json::Value>(&redacted).is_ok(), "JSON stays JSON: {redacted}");
}

#[test]
fn a_secret_in_another_unicode_is_redacted() {
    let vault = vault();
    for units in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
        let echo: Vec<u8> = format!("key: {KEY}.").encode_utf16().flat_map(units).collect();
        let mut redactor = vault.redactor().expect("secrets");
        let mut out = redactor.push(&echo);
        out.extend(redactor.finish());
        let plain: String = out.iter().filter(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
        assert_eq!(plain, "key: [secret KEY].");
    }
}

/// The text that a guest sees from these pieces if the text is cut off.
fn cut_off(pieces: &[&str]) -> String {
    let mut redactor = vault().redactor().expect("secrets");
    let seen: Vec<u8> = pieces.iter().flat_map(|piece| redactor.push(piece.as_bytes())).collect();
    String::from_utf8(seen).expect("text")
}

#[test]
fn redaction_reveals_no_prefix_of_a_secret() {
    let (right, wrong) = ("another-secre", "anothex-secre");
    for known in 1..right.len() {
        let (right, wrong) = (&right[..known], &wrong[..known]);
        // A text that is cut off does not show whether its end is the beginning of a secret,
        let before = "x".repeat(3_000);
        assert_eq!(cut_off(&[&before, right]).len(), cut_off(&[&before, wrong]).len(), "{right}");
        assert_eq!(cut_off(&[right]).len(), cut_off(&[wrong]).len(), "{right}");
        assert_eq!(cut_off(&["a line\n", right, "\n"]), format!("a line\n{right}\n"));
        // and neither does a complete text.
        assert_eq!(vault().redacted(right.into()), right);
    }
}

#[test]
fn redaction_holds_back_a_bounded_part_of_a_line() {
    let longest = vault().held_back();
    assert!(longest < 44 * KEY.len(), "{longest}");
    for endless in ["&#0", "&amp;", "%25", "\\", "a"] {
        let mut redactor = vault().redactor().expect("secrets");
        let mut seen = redactor.push(endless.as_bytes()).len();
        for _ in 0..2_000 {
            seen += redactor.push(b"0").len();
            assert!(redactor.held() < longest, "{endless} and zeros: {} of {longest}", redactor.held());
        }
        seen += redactor.finish().len();
        assert_eq!(seen, endless.len() + 2_000);
    }
    assert_eq!(cut_off(&["data: 1\n\nda", "ta: 2\n", "\nd"]), "data: 1\n\ndata: 2\n\n", "a stream of events continues");
    assert_eq!(cut_off(&["key ", KEY, "\n"]), "key [secret KEY]\n");
}

#[test]
fn beginning_of_a_long_text_is_redacted() {
    let text = format!("{} {KEY} {}", "x".repeat(95), "y".repeat(100_000));
    let (redacted, rest) = vault().redacted_beginning(text.clone(), 200);
    assert!(redacted.starts_with(&format!("{} [secret KEY] yyy", "x".repeat(95))), "{redacted}");
    assert_eq!(redacted.len() - "[secret KEY]".len() + KEY.len() + rest, text.len());
    for max in 0..4 {
        let (redacted, rest) = vault().redacted_beginning("ü".repeat(50_000), max);
        assert!(redacted.chars().all(|c| c == 'ü') && redacted.len() + rest == 100_000, "{redacted:?} and {rest}");
    }
    assert_eq!(vault().redacted_beginning(KEY.into(), 0), ("[secret KEY]".into(), 0));
}

#[test]
fn secret_value_is_checked_and_never_printed() {
    assert_eq!(format!("{:?}", SecretValue::new(KEY).expect("a value")), "SecretValue(…)");
    for (value, expected) in [
        ("short", InvalidSecret::Size(5)),
        ("two\nlines of it", InvalidSecret::Control),
        (&"x".repeat(MAX_SECRET + 1), InvalidSecret::Size(MAX_SECRET + 1)),
    ] {
        assert_eq!(SecretValue::new(value), Err(expected));
    }
}

proptest! {
    /// The output does not depend on the division of a response into pieces, and never contains the secret.
    #[test]
    fn redaction_of_pieces_equals_redaction_of_the_whole(
        parts in prop::collection::vec(prop_oneof![Just(KEY.to_owned()), Just("another-secret".to_owned()), "[a-z0-9/+=]{0,12}"], 0..8),
        cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let whole = parts.concat();
        let mut redactor = vault().redactor().expect("secrets");
        let (mut out, mut done) = (Vec::new(), 0);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(whole.len())).collect();
        cuts.sort_unstable();
        for cut in cuts {
            out.extend(redactor.push(&whole.as_bytes()[done..cut]));
            done = cut;
        }
        out.extend(redactor.push(&whole.as_bytes()[done..]));
        out.extend(redactor.finish());
        let out = String::from_utf8(out).expect("text");
        prop_assert_eq!(&out, &vault().redacted(whole));
        prop_assert!(!out.contains(KEY) && !out.contains("another-secret"));
    }
}
