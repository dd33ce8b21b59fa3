//! The explanation of a refused request for the author of a plugin: the request, the nearest rule, and the lines that would
//! allow it.

use http::Method;
use url::Url;

use super::rule::Misfit;
use super::{HttpRule, Reach, Scheme};
use crate::stop::excerpt;

/// Bytes of a URL in a suggestion; a longer one is cut to its origin.
const MAX_URL: usize = 300;

/// Explains why a request was refused. The guest cannot break out of the lines of TOML: a URL in its normal form and a method
/// are ASCII without quotation marks, backslashes and control characters.
pub(super) fn explain(plugin: &str, rules: &[HttpRule], method: &Method, url: &Url) -> Vec<String> {
    let mut bare = url.clone();
    bare.set_query(None);
    bare.set_fragment(None);
    if bare.as_str().len() > MAX_URL {
        bare.set_path("/");
    }
    let method = excerpt(method.as_str());
    let nearest =
        rules.iter().filter_map(|rule| Some((rule.allows(&method, url).err()?, rule))).max_by_key(|near| near.0);
    let mut lines = vec![format!("http: {method} {} was refused: {}", excerpt(bare.as_str()), reason(nearest))];
    if let Some(reach) = allowing_reach(&method, &bare) {
        lines.extend([
            "to allow it, the operator adds to toolgate.toml:".to_owned(),
            format!("[[plugin.{plugin}.grants.http]]"),
            format!("url = \"{}\"", escaped(bare.as_str())),
            format!("methods = [\"{}\"]", escaped(&method)),
        ]);
        lines.extend((reach == Reach::Private).then(|| "private = true".to_owned()));
    }
    lines
}

fn reason(nearest: Option<(Misfit, &HttpRule)>) -> String {
    match nearest {
        None | Some((Misfit::Host, _)) => "no rule is for this host".to_owned(),
        Some((Misfit::Scheme, rule)) => match rule.scheme {
            Scheme::Http => "the rule for this host is for http".to_owned(),
            Scheme::Https => "the rule for this host is for https".to_owned(),
        },
        Some((Misfit::Port, rule)) => format!("the rule for this host is for port {}", rule.port),
        Some((Misfit::Path, rule)) => format!("the rule for this host is for paths below {}", excerpt(&rule.path)),
        Some((Misfit::Method, rule)) => {
            let methods: Vec<_> = rule.methods.iter().map(String::as_str).collect();
            format!("the rule for this URL allows {}", methods.join(", "))
        }
    }
}

/// The reach with which the suggestion is a rule that allows the request. `None` if no rule allows it.
fn allowing_reach(method: &str, url: &Url) -> Option<Reach> {
    let rule = HttpRule::parse(url.as_str(), [method.to_owned()].into(), Reach::Public).ok()?;
    rule.allows(method, url).ok().and_then(|()| rule.needed_reach())
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(rules: &[(&str, &str)], method: &str, url: &str) -> Vec<String> {
        let rule = |(url, method): &(&str, &str)| {
            HttpRule::parse(url, [(*method).to_owned()].into(), Reach::Public).expect("a rule")
        };
        let rules: Vec<_> = rules.iter().map(rule).collect();
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        explain("web", &rules, &method, &Url::parse(url).expect("a URL"))
    }

    #[test]
    fn a_refusal_names_the_nearest_rule_and_the_missing_one() {
        let rules = [("https://api.example.com/v1/", "GET"), ("https://other.example.com", "POST")];
        assert_eq!(
            denied(&rules, "POST", "https://api.example.com/v1/items?key=1"),
            [
                "http: POST https://api.example.com/v1/items was refused: the rule for this URL allows GET",
                "to allow it, the operator adds to toolgate.toml:",
                "[[plugin.web.grants.http]]",
                "url = \"https://api.example.com/v1/items\"",
                "methods = [\"POST\"]",
            ]
        );
        for (url, reason) in [
            ("https://api.example.com/v2", "the rule for this host is for paths below /v1/"),
            ("https://api.example.com:8443/v1/", "the rule for this host is for port 443"),
            ("http://api.example.com/v1/", "the rule for this host is for https"),
            ("https://evil.org/", "no rule is for this host"),
        ] {
            assert!(denied(&rules, "GET", url)[0].ends_with(reason), "{url}");
        }
        assert!(denied(&[], "GET", "https://evil.org/")[0].ends_with("no rule is for this host"));
    }

    #[test]
    fn a_suggestion_is_a_possible_rule_on_lines_of_its_own() {
        assert_eq!(denied(&[], "TRACE", "https://example.com/").len(), 1);
        assert_eq!(denied(&[], "GET", "https://example.com/..%2f").len(), 1);
        assert_eq!(denied(&[], "GET", "http://169.254.169.254/").len(), 1, "no grant reaches it");
        for private in ["http://127.0.0.1:8080/", "http://localhost/", "http://[::1]/"] {
            assert_eq!(denied(&[], "GET", private)[5..], ["private = true"], "{private}");
        }
        let long = format!("https://example.com/{}", "a".repeat(5_000));
        assert_eq!(denied(&[], "GET", &long)[3], "url = \"https://example.com/\"");
        for hostile in
            ["https://example.com/\"]\nprivate=true", "https://example.com/a\\b\u{202e}", "https://ex\u{430}mple.com/"]
        {
            for line in denied(&[], "GET", hostile) {
                assert!(line.is_ascii() && !line.contains(['\n', '\\']), "{line}");
                assert!(line.matches('"').count() <= 2, "{line}");
            }
        }
    }
}
