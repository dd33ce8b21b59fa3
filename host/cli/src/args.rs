//! Arguments that several commands share.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use api::Verbatim;
use api::formats::{Chosen, Part};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Args, Command, ValueEnum};
use domain::json::Malformed;
use domain::step::StepKind;
use domain::{ConversationId, Json, ToolName, ids::InvalidId};
use toolgate::config::Config;

use crate::report::{Exit, Report};

/// The conversation of commands that name none.
pub(crate) const CONVERSATION: &str = "cli";

/// The largest file of arguments or of an answer, in bytes.
const MAX_INPUT: u64 = 64 << 20;

/// The maximal width of help texts.
pub(crate) const WIDTH: usize = 100;

/// The heading of the options that name a host.
pub(crate) const HOST: &str = "Host";

/// The heading of the options for the log.
pub(crate) const LOGGING: &str = "Logging";

/// The host to speak to, and the token to use.
#[derive(Debug, Args)]
#[command(next_help_heading = HOST)]
pub(crate) struct Connection {
    /// The host's address. Default: that of the host that runs on the data folder, if only you can access the folder
    #[arg(long, env = "TOOLGATE_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The bearer token. Default: the admin token in the data folder, for a host on this machine only
    #[arg(long, env = "TOOLGATE_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// A file with the bearer token, so that no list of processes shows it. It takes precedence over --token and
    /// TOOLGATE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
}

/// The data folder and the configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct Data {
    /// The host's data folder: turns, components, compiled code, tokens [default: ./toolgate-data]
    #[arg(long = "data", env = "TOOLGATE_DATA", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The configuration [default: ./toolgate.toml, if it exists]
    #[arg(long = "config", env = "TOOLGATE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Where the turns of a host are.
pub(crate) enum Turns {
    /// The folder of the store, which may not exist, in the data folder.
    Folder(PathBuf),
    /// A database.
    #[cfg(feature = "postgres")]
    Database(Box<store::PostgresSettings>),
}

/// The hint for a data folder without a store.
pub(crate) const NO_STORE: &str = "name the host's data folder with --data";

impl Data {
    /// The data folder: the command line's, or else the configuration's.
    pub(crate) fn folder(&self) -> Result<PathBuf, Report> {
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            None => Config::read(self.config.as_deref())?.data_folder(),
        };
        not_a_file(&folder)?;
        Ok(folder)
    }

    /// Where the configuration has the turns.
    pub(crate) fn turns(&self) -> Result<Turns, Report> {
        #[cfg(feature = "postgres")]
        if let Some(settings) = Config::read(self.config.as_deref())?.database()? {
            return Ok(Turns::Database(Box::new(settings)));
        }
        Ok(Turns::Folder(self.folder()?.join("store")))
    }

    /// The folder of the store. The hints are for a folder without one, and for a host with its turns in a database.
    pub(crate) fn store(&self, if_missing: &str, in_database: &str) -> Result<PathBuf, Report> {
        let is_in_database = Config::read(self.config.as_deref()).is_ok_and(|config| config.store.is_some());
        if is_in_database {
            let message = "the turns of this host are in a database, which the configuration names in `store`";
            return Err(Report::new(Exit::Refused, message).hint(in_database));
        }
        let folder = self.folder()?.join("store");
        if folder.is_dir() {
            return Ok(folder);
        }
        Err(Report::new(Exit::Refused, format!("there is no store in {}", folder.display())).hint(if_missing))
    }
}

/// The user's cache.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cache")]
pub(crate) struct Cache {
    /// The folder for toolchains and for at most 2 GiB of compiled code [default: toolgate in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, env = "TOOLGATE_CACHE", value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Cache {
    /// The folder. `None` if neither the user nor the environment names one.
    pub(crate) fn folder(&self) -> Option<kit::Cache> {
        let folder = self.cache.clone().or_else(toolgate::config::user_cache)?;
        kit::Cache::at(&folder).ok()
    }

    /// The option that names the folder, as the user typed it.
    pub(crate) fn typed(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    /// The folder for compiled code.
    pub(crate) fn compiled(&self) -> Option<PathBuf> {
        self.folder().map(|cache| cache.compiled())
    }
}

/// Where toolchains come from.
#[derive(Debug, Args)]
pub(crate) struct Toolchains {
    /// Download nothing. If a tool is missing, the command fails and names it
    #[arg(long)]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) cache: Cache,
}

/// A parser of the names of formats.
pub(crate) fn format<T: Part>() -> PossibleValuesParser {
    Chosen::<T>::names().collect::<Vec<_>>().into()
}

/// The name of an argument's value, as the API spells it.
pub(crate) fn value_name(value: impl ValueEnum) -> Option<String> {
    value.to_possible_value().map(|value| value.get_name().to_owned())
}

/// Whether only this machine can reach an address.
pub(crate) fn is_private(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Quotes a text for a shell, as one word. So a plugin's choice runs nothing when it is pasted.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    if !text.is_empty() && text.chars().all(plain) && !text.starts_with('-') {
        return text.to_owned();
    }
    format!("'{}'", escape::line(text).replace('\'', "'\\''"))
}

/// Parses a conversation's id.
pub(crate) fn conversation(text: &str) -> Result<ConversationId, InvalidId> {
    ConversationId::new(text)
}

/// Parses a tool's name.
pub(crate) fn tool(text: &str) -> Result<ToolName, InvalidId> {
    ToolName::new(text)
}

/// Parses a kind of step.
pub(crate) fn step(text: &str) -> Result<StepKind, String> {
    StepKind::named(text).ok_or_else(|| format!("expected {}", StepKind::NAMES.join(", ")))
}

/// Whether the words of a command line that clap refuses ask for JSON.
pub(crate) fn has_json(words: &[OsString]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--json")
}

/// Whether the command prints JSON.
pub(crate) fn is_json(matches: &ArgMatches) -> bool {
    let here = matches.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or_default();
    here || matches.subcommand().is_some_and(|(_, matches)| is_json(matches))
}

/// Reads an argument that is JSON, `@` and a file with JSON, or `-` for standard input. The text is kept as it is, so that
/// numbers keep every digit.
pub(crate) fn json(argument: &str) -> Result<Verbatim, String> {
    let text = given(argument)?;
    checked(&text).map(Verbatim).map_err(|error| match argument {
        "-" => format!("standard input is not valid JSON: {error}"),
        _ if argument.starts_with('@') => format!("the file is not valid JSON: {error}"),
        _ => format!("not valid JSON: {error}; a JSON string needs its own quotes, as in '\"yes\"'"),
    })
}

/// The text of an argument: the text itself, the content of a file after `@`, or standard input for `-`. No JSON text
/// begins like this.
pub(crate) fn given(argument: &str) -> Result<String, String> {
    match argument.strip_prefix('@') {
        Some(file) => {
            let text = File::open(file).and_then(text);
            text.map_err(|error| format!("cannot read {file}: {error}"))
        }
        None if argument == "-" => {
            text(io::stdin().lock()).map_err(|error| format!("cannot read standard input: {error}"))
        }
        None => Ok(argument.to_owned()),
    }
}

fn text(from: impl Read) -> io::Result<String> {
    let mut text = String::new();
    let read = from.take(MAX_INPUT + 1).read_to_string(&mut text)? as u64;
    if read > MAX_INPUT {
        return Err(io::Error::other(format!("it is larger than {MAX_INPUT} bytes")));
    }
    Ok(text)
}

/// Checks a JSON text as a host does, without the white space around it.
pub(crate) fn checked(text: &str) -> Result<Json, Malformed> {
    Json::parse(text.trim_ascii())
}

/// The report for a folder that was named instead of a file. `expected` says what the file should be, as in `a backup`.
pub(crate) fn folder_instead(path: &Path, expected: &str) -> Option<Report> {
    let report = || Report::new(Exit::Usage, format!("{} is a folder and not {expected}", path.display()));
    path.is_dir().then(report)
}

/// Refuses a file that was named instead of a folder.
pub(crate) fn not_a_file(path: &Path) -> Result<(), Report> {
    if path.metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(Report::new(Exit::Usage, format!("{} is a file, and not a folder", path.display())));
    }
    Ok(())
}

/// The report for a file of the command line that cannot be read. `what` is the file, or what is in it.
pub(crate) fn unread(what: impl Display, error: io::Error) -> Report {
    Report::from(anyhow::Error::new(error).context(format!("cannot read {what}"))).of_user()
}

/// Moves the options of a host behind the command, which declares them. `toolgate --help` lists these options, so people also
/// write them in front of the command.
pub(crate) fn with_host_options_behind(root: &Command, words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let host = Connection::augment_args(Command::new(HOST));
    let has = |command: &Command, name: &str| {
        command.get_arguments().any(|arg| arg.get_long() == Some(name) && arg.get_action().takes_values())
    };
    let mut words = words.into_iter().peekable();
    let (mut front, mut moved) = (Vec::from_iter(words.next()), Vec::new());
    while let Some(word) = words.next_if(|word| word.to_string_lossy().starts_with("--")) {
        let text = word.to_string_lossy().into_owned();
        let (name, has_value) = (text[2..].split('=').next().unwrap_or_default(), text.contains('='));
        let part = if has(&host, name) { &mut moved } else { &mut front };
        part.push(word);
        if !has_value && (has(&host, name) || has(root, name)) {
            part.extend(words.next());
        }
    }
    let mut command = root;
    while let Some(within) = words.peek().and_then(|word| command.find_subcommand(word)) {
        command = within;
        front.extend(words.next());
    }
    // Without a command, clap explains what is missing.
    if !std::ptr::eq(command, root) {
        front.append(&mut moved);
    }
    front.extend(words);
    front
}

/// The commands as a shell completes them: the options of a host may also be in front of the command.
pub(crate) fn with_host_options_in_front(root: Command) -> Command {
    Connection::augment_args(root)
}

/// The commands with shorter help: `toolgate --help` lists the options that many commands share, and the help of each
/// such command refers to it.
pub(crate) fn listing_shared_options_once(root: Command) -> Command {
    let logging: Vec<Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    let host = Connection::augment_args(Command::new("host").disable_help_flag(true).max_term_width(WIDTH));
    let host = host.help_template("{options}").render_long_help();
    let after = root.get_after_help().map(ToString::to_string).unwrap_or_default();
    let after = format!("{HOST}, for every command that speaks to one:\n{}\n\n{after}", host.to_string().trim_end());
    root.after_help(after).mut_subcommands(|command| pointing_to_them(command, &logging))
}

fn pointing_to_them(command: Command, logging: &[Arg]) -> Command {
    let is_of_host = |arg: &Arg| arg.get_help_heading() == Some(HOST);
    let what = if command.get_arguments().any(is_of_host) { "the host and the log" } else { "the log" };
    let after = command.get_after_help().map(|after| format!("{after}\n\n")).unwrap_or_default();
    command
        .mut_args(|arg| if is_of_host(&arg) { arg.hide(true) } else { arg })
        .args(logging.iter().map(|arg| arg.clone().hide(true)))
        .after_help(format!("{after}`toolgate --help` lists the options for {what}."))
        .mut_subcommands(|command| pointing_to_them(command, logging))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (text, expected) in [
            ("accept", "accept"),
            ("plugins/a.b", "plugins/a.b"),
            ("not now", "'not now'"),
            ("", "''"),
            ("-rf", "'-rf'"),
            ("$(rm x)", "'$(rm x)'"),
            ("a'; rm x; '", r"'a'\''; rm x; '\'''"),
            ("two\nlines", r"'two\nlines'"),
        ] {
            assert_eq!(word(text), expected);
        }
    }

    #[test]
    fn host_options_may_be_in_front_of_the_command() {
        for (typed, expected) in [
            ("t --url x status --json", "t status --url x --json"),
            ("t --log debug --token=x --url y audit verify -- z", "t --log debug audit verify --token=x --url y -- z"),
            ("t status --url x", "t status --url x"),
            ("t --url status", "t"),
            ("t --url x", "t"),
            ("t --url x --help", "t --help"),
            ("t --url x nonsense", "t nonsense"),
            ("t --config x build hello", "t build --config x hello"),
        ] {
            let words = typed.split(' ').map(OsString::from);
            let moved = with_host_options_behind(&crate::definition(), words);
            assert_eq!(moved, expected.split(' ').collect::<Vec<_>>(), "{typed}");
        }
    }
}
