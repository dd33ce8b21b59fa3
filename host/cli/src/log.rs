//! The host's log on standard error. Text from plugins, models and callers is escaped, so that none of it can forge a log
//! line, in either format.

use std::fmt;
use std::io::{self, Write};

use clap::ValueEnum;
use tracing::Subscriber;
use tracing::field::Field;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::report::{Exit, Report};
use crate::terminal::Terminal;

/// The form of log lines.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts the log with this filter.
pub(crate) fn to_stderr(filter: &str, format: LogFormat) -> Result<(), Report> {
    let filter = parsed(filter).map_err(|error| {
        Report::new(Exit::Usage, "the log filter is invalid")
            .because(error)
            .hint("write it like `info` or `warn,guest=debug`")
    })?;
    match format {
        LogFormat::Text => in_text(filter, Terminal::new().note_has_colours(), io::stderr).init(),
        LogFormat::Json => in_json(filter, io::stderr).init(),
    }
    Ok(())
}

/// Without the lines of the database. Each has a path of the machine that built the host. The store reports the errors.
fn parsed(filter: &str) -> Result<EnvFilter, ParseError> {
    Ok(EnvFilter::try_new(filter)?.add_directive("sled=off".parse()?))
}

/// Lines for people. The formatter adds colours, so each field is escaped before it formats the line.
fn in_text<W>(filter: EnvFilter, colours: bool, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let fields = debug_fn(|writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(writer, "{}", escape::line(&value)),
            name => write!(writer, "{name}={}", escape::line(&value)),
        }
    });
    tracing_subscriber::fmt()
        // The library would report them on standard error, where they occurred, and panic.
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_ansi(colours)
        .fmt_fields(fields.delimited(" "))
        .with_writer(writer)
        .finish()
}

/// Lines of JSON. Each line is escaped as a whole.
fn in_json<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .json()
        .with_writer(Escaped(writer))
        .finish()
}

/// Escapes each line of JSON.
struct Escaped<W>(W);

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Escaped<W> {
    type Writer = EscapedLine<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        EscapedLine(self.0.make_writer())
    }
}

struct EscapedLine<W>(W);

impl<W: Write> Write for EscapedLine<W> {
    /// The formatter writes each event in one piece.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let whole = String::from_utf8_lossy(event);
        let line = whole.strip_suffix('\n').unwrap_or(&whole);
        self.0.write_all(format!("{}\n", escape::json_line(line)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Keeps the written lines for the test.
    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics while writing").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Sink {
        fn lines(&self) -> Vec<String> {
            let bytes = self.0.lock().expect("nobody panics while writing").clone();
            let text = String::from_utf8(bytes).expect("UTF-8");
            assert!(text.ends_with('\n'));
            text.split_terminator('\n').map(str::to_owned).collect()
        }
    }

    /// A text with which a plugin would imitate the host.
    const FORGED: &str =
        "x\n2026-01-01T00:00:00Z  INFO registry: plugin loaded\r\u{1b}[1A\u{9b}2K\u{202e}раураӏ\u{e0041}";

    /// Logs the text as every kind of field, inside a span that has it too.
    fn log(subscriber: impl Subscriber + Send + Sync) {
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("load", plugin = FORGED, name = %FORGED);
            let _entered = span.enter();
            let error = io::Error::other(FORGED);
            let error: &(dyn std::error::Error + 'static) = &error;
            tracing::warn!(error, displayed = %FORGED, debugged = ?FORGED, list = ?[FORGED], plain = FORGED, "{FORGED}");
        });
    }

    fn filter() -> EnvFilter {
        parsed("debug").expect("a filter")
    }

    fn assert_harmless(line: &str) {
        let foreign =
            |c: char| c.is_control() || ('\u{80}'..='\u{9f}').contains(&c) || "\u{202e}\u{e0041}р".contains(c);
        assert!(!line.contains(foreign), "{line:?}");
    }

    #[test]
    fn logged_text_cannot_forge_a_text_line() {
        let sink = Sink::default();
        let writer = sink.clone();
        log(in_text(filter(), false, move || writer.clone()));
        let lines = sink.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_harmless(&lines[0]);
        assert_eq!(lines[0].matches("plugin loaded").count(), 8, "nothing is cut: {}", lines[0]);
        assert!(lines[0].contains(r"x\n2026"), "{}", lines[0]);
    }

    #[test]
    fn logged_text_cannot_forge_a_json_line() {
        let sink = Sink::default();
        let writer = sink.clone();
        log(in_json(filter(), move || writer.clone()));
        let lines = sink.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_harmless(&lines[0]);
        let value: serde_json::Value = serde_json::from_str(&lines[0]).expect("JSON");
        assert_eq!(value["fields"]["plain"], FORGED, "the value is exact");
        assert_eq!(value["span"]["plugin"], FORGED);
    }

    #[test]
    fn colours_come_from_the_host_only() {
        let sink = Sink::default();
        let writer = sink.clone();
        log(in_text(filter(), true, move || writer.clone()));
        let lines = sink.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        let bare = lines[0].replace("\u{1b}[0m", "").replace("\u{1b}[2m", "").replace("\u{1b}[33m", "");
        assert_harmless(&bare.replace("\u{1b}[1m", "").replace("\u{1b}[3m", ""));
    }
}
