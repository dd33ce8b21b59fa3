//! Tables of a report, and their places in docs/performance.md.

use anyhow::{Context as _, Result};

use crate::measure::say;
use crate::setting;

/// A table in Markdown. It is printed when it is complete.
pub(crate) struct Table {
    /// The name of its place in docs/performance.md.
    name: &'static str,
    lines: Vec<String>,
}

impl Table {
    /// A table with these columns. The first `texts` of them are not numbers.
    pub(crate) fn new(name: &'static str, columns: &[&str], texts: usize) -> Self {
        let rule = (0..columns.len()).map(|n| if n < texts { "---|" } else { "---:|" });
        let rule = format!("|{}", rule.collect::<String>());
        Self { name, lines: vec![format!("| {} |", columns.join(" | ")), rule] }
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        self.lines.push(format!("| {} |", cells.join(" | ")));
    }

    fn say(&self) {
        self.lines.iter().for_each(|line| say(&format!("  {line}")));
    }

    /// Prints the table, and writes it if that is wanted.
    pub(crate) fn finish(&self) -> Result<()> {
        self.say();
        if crate::is_written() { self.write() } else { Ok(()) }
    }

    /// Replaces the table in docs/performance.md.
    fn write(&self) -> Result<()> {
        let path = setting::repository().join("docs/performance.md");
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = self.placed(&text).with_context(|| format!("{} has no place for {}", path.display(), self.name))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The text with this table between its marks.
    fn placed(&self, text: &str) -> Option<String> {
        let (begin, end) = (format!("<!-- table {} -->\n", self.name), format!("<!-- end of {} -->", self.name));
        let (before, rest) = text.split_once(&begin)?;
        let (_, after) = rest.split_once(&end)?;
        Some(format!("{before}{begin}\n{}\n\n{end}{after}", self.lines.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_replaces_the_one_between_its_marks() {
        let mut table = Table::new("times", &["language", "time"], 1);
        table.row(&["C".to_owned(), "1 s".to_owned()]);
        let text = "a\n<!-- table times -->\nold\n<!-- end of times -->\nb\n";
        let expected =
            "a\n<!-- table times -->\n\n| language | time |\n|---|---:|\n| C | 1 s |\n\n<!-- end of times -->\nb\n";
        assert_eq!(table.placed(text).as_deref(), Some(expected));
        assert_eq!(table.placed(expected).as_deref(), Some(expected), "again and again");
        assert_eq!(table.placed("no place"), None);
    }

    /// The cells of a language's row in the table of languages.
    fn row<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
        let (_, table) = page.split_once("<!-- table languages -->").unwrap();
        let row = table.lines().find(|line| line.starts_with(&format!("| {language} |"))).unwrap();
        row.trim_matches('|').split('|').map(str::trim).collect()
    }

    fn milliseconds(cell: &str) -> f64 {
        cell.strip_suffix(" ms").unwrap().parse().unwrap()
    }

    #[test]
    fn texts_have_the_figures_of_the_table() {
        let read = |path: &str| {
            let text = std::fs::read_to_string(setting::repository().join(path)).unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let page = std::fs::read_to_string(setting::repository().join("docs/performance.md")).unwrap();
        let compiled = |language: &str| milliseconds(row(&page, language)[3]) / 1000.0;
        let (rust, python) = (compiled("Rust"), compiled("Python"));
        let expected = format!("{rust:.2} s for a plugin in Rust and {python:.1} s for one in Python");
        assert!(read("README.md").contains(&expected), "README.md: {expected}");
        let first = |language: &str| milliseconds(row(&page, language)[5]);
        let loaded = |language: &str| milliseconds(row(&page, language)[4]) + first(language);
        let all = crate::authors::LANGUAGES.iter().map(|(language, ..)| *language);
        let slow = ["TypeScript (StarlingMonkey)", "Python"];
        let others = all.clone().filter(|language| !slow.contains(language)).map(loaded).fold(0.0, f64::max);
        let text = read("docs/performance.md");
        for expected in [
            format!("From a loaded plugin it takes at most {} ms.", all.map(first).fold(0.0, f64::max)),
            format!("{:.0} ms in StarlingMonkey and {:.0} ms in Python", loaded(slow[0]), loaded(slow[1])),
            format!("In the others it takes at most {others:.0} ms."),
        ] {
            assert!(text.contains(&expected), "docs/performance.md: {expected}");
        }
    }

    #[test]
    fn page_has_a_place_for_each_table() {
        let page = std::fs::read_to_string(setting::repository().join("docs/performance.md")).unwrap();
        let durable = ["durable-journaling", "durable-waiting", "durable-resuming"];
        let scale = ["scale-rates", "scale-costs", "scale-idle", "scale-following", "scale-takeover"];
        for name in durable.into_iter().chain(scale) {
            assert!(Table::new(name, &[], 0).placed(&page).is_some(), "{name}");
        }
    }

    #[test]
    fn page_has_each_table_with_every_language() {
        let page = std::fs::read_to_string(setting::repository().join("docs/performance.md")).unwrap();
        for name in ["languages", "authors"] {
            assert!(Table::new(name, &[], 0).placed(&page).is_some(), "{name}");
            let (_, rest) = page.split_once(&format!("<!-- table {name} -->")).unwrap();
            let (table, _) = rest.split_once(&format!("<!-- end of {name} -->")).unwrap();
            for (language, ..) in crate::authors::LANGUAGES {
                assert!(table.contains(&format!("\n| {language} | ")), "{name} has no row of {language}");
            }
        }
    }
}
