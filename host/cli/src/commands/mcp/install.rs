//! `mcp install`: adds the command to the configuration of an MCP client.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate::config::Config;

use crate::args::{Data, not_a_file};
use crate::report::{Exit, Report};
use crate::terminal::{Style, Terminal};

/// The name of the server in the client.
const NAME: &str = "toolgate";

/// Add the tools to an MCP client: show the change of its configuration, and write it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolgate mcp install cursor --data ~/toolgate-data --plugins ~/plugins
  toolgate mcp install claude-code --yes

The earlier file is kept beside the new one, with `.before-toolgate` at the end of its name.")]
pub(super) struct Install {
    /// The client
    client: McpClient,
    /// The watched folder of plugins, for a host that the client starts [default: ./plugins]
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// Write the change without a question
    #[arg(long)]
    yes: bool,
    /// Print the change as JSON. It is written only with `--yes`
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: Data,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum McpClient {
    /// Claude Code, for the project in this folder: .mcp.json
    ClaudeCode,
    /// Claude Desktop: claude_desktop_config.json
    ClaudeDesktop,
    /// Codex: ~/.codex/config.toml
    Codex,
    /// Cursor: ~/.cursor/mcp.json
    Cursor,
    /// Gemini CLI: ~/.gemini/settings.json
    Gemini,
    /// opencode, for the project in this folder: opencode.json
    Opencode,
    /// VS Code, for the project in this folder: .vscode/mcp.json
    Vscode,
    /// Windsurf: ~/.codeium/windsurf/mcp_config.json
    Windsurf,
}

impl McpClient {
    /// Its configuration, from a folder.
    fn file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".mcp.json",
            Self::ClaudeDesktop if cfg!(target_os = "macos") => {
                "Library/Application Support/Claude/claude_desktop_config.json"
            }
            Self::ClaudeDesktop if cfg!(windows) => "AppData/Roaming/Claude/claude_desktop_config.json",
            Self::ClaudeDesktop => ".config/Claude/claude_desktop_config.json",
            Self::Codex => ".codex/config.toml",
            Self::Cursor => ".cursor/mcp.json",
            Self::Gemini => ".gemini/settings.json",
            Self::Opencode => "opencode.json",
            Self::Vscode => ".vscode/mcp.json",
            Self::Windsurf => ".codeium/windsurf/mcp_config.json",
        }
    }

    /// The member of the file with the servers.
    fn list(self) -> &'static str {
        match self {
            Self::Codex => "mcp_servers",
            Self::Opencode => "mcp",
            Self::Vscode => "servers",
            _ => "mcpServers",
        }
    }

    /// A server that the client starts with a command.
    fn server(self, command: &[String]) -> Value {
        let (program, args) = command.split_at(1.min(command.len()));
        match self {
            Self::Opencode => json!({ "type": "local", "command": command, "enabled": true }),
            Self::Vscode => json!({ "type": "stdio", "command": program.concat(), "args": args }),
            _ => json!({ "command": program.concat(), "args": args }),
        }
    }

    /// Whether that is the folder of a project, and not the user's.
    fn is_of_project(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Opencode | Self::Vscode)
    }
}

/// A change of a file.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    /// The lines that go, if the client has a server of this name already.
    removed: Option<String>,
    added: String,
    /// The new content of the file.
    text: String,
}

impl Install {
    pub(super) fn run(self, terminal: &Terminal) -> Result<(), Report> {
        let folder = if self.client.is_of_project() {
            std::env::current_dir().context("cannot find this folder")?
        } else {
            std::env::home_dir().ok_or_else(|| Report::new(Exit::Usage, "this user has no home folder"))?
        };
        let file = folder.join(self.client.file());
        // A symbolic link stays one.
        let file = fs::canonicalize(&file).unwrap_or(file);
        let earlier = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(anyhow::Error::new(error).context(format!("cannot read {}", file.display())).into());
            }
        };
        let added = self.client.server(&self.command()?);
        let change = change(self.client, &earlier, &added).map_err(|why| {
            terminal.note(&format!("{}\n", entry(self.client, &added).trim_end()));
            Report::new(Exit::Refused, format!("cannot change {}: {why}", file.display()))
                .hint("the file is as it was; add the lines above yourself")
        })?;
        if !self.json {
            show(terminal, &file, change.as_ref())?;
        }
        let writes = change.is_some() && (self.yes || (!self.json && agrees(terminal)?));
        let kept = match &change {
            Some(change) if writes => write(&file, &earlier, &change.text),
            _ => Ok(None),
        };
        let kept = kept.with_context(|| format!("cannot write {}", file.display()))?;
        if self.json {
            let (removed, added) = change.map_or((None, None), |change| (change.removed, Some(change.added)));
            let kept = kept.map(|kept| kept.display().to_string());
            let file = file.display().to_string();
            let said = json!({ "file": file, "removed": removed, "added": added, "written": writes, "kept": kept });
            return Ok(terminal.line(said.to_string())?);
        }
        let kept = kept.map(|kept| format!("; the earlier file is {}", kept.display())).unwrap_or_default();
        match (change.is_some(), writes) {
            (false, _) => {}
            (true, false) => terminal.line("nothing was written")?,
            (true, true) => {
                terminal.line(format!("written{kept}"))?;
                terminal.line("Restart the client. It starts the host, or joins the one that runs.")?;
            }
        }
        Ok(())
    }

    /// The command that the client starts. Its paths are absolute, because clients start it in a folder of their choice.
    fn command(&self) -> Result<Vec<String>, Report> {
        let config = Config::read(self.data.config.as_deref())?;
        // The command reads only a file that is named.
        let found = Some(PathBuf::from(toolgate::config::FILE)).filter(|file| file.is_file());
        let file = self.data.config.clone().or(found);
        let absolute = |path: PathBuf| {
            let path = std::path::absolute(&path).with_context(|| format!("{} is not a path", path.display()))?;
            let text = path.to_str().map(str::to_owned);
            text.ok_or_else(|| Report::new(Exit::Usage, format!("{} is not UTF-8", path.display())))
        };
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = vec![absolute(program)?, "mcp".to_owned()];
        if let Some(file) = file {
            command.extend(["--config".to_owned(), absolute(file)?]);
        }
        let data = self.data.folder.clone().unwrap_or_else(|| config.data_folder());
        let plugins = self.plugins.clone().unwrap_or_else(|| config.plugins_folder());
        [&data, &plugins].into_iter().try_for_each(|folder| not_a_file(folder))?;
        command.extend(["--data".to_owned(), absolute(data)?, "--plugins".to_owned(), absolute(plugins)?]);
        Ok(command)
    }
}

/// Shows the lines that go and those that come.
fn show(terminal: &Terminal, file: &Path, change: Option<&Change>) -> io::Result<()> {
    let Some(change) = change else { return terminal.line(format!("{} has it already", file.display())) };
    terminal.line(format!("{}:", terminal.style(Style::Strong, &file.display().to_string())))?;
    let removed = change.removed.as_deref().unwrap_or_default();
    for (lines, sign, style) in [(removed, "-", Style::Bad), (&*change.added, "+", Style::Good)] {
        for line in lines.lines() {
            terminal.line(terminal.style(style, &format!("{sign} {line}")))?;
        }
    }
    Ok(())
}

/// Asks at the terminal.
fn agrees(terminal: &Terminal) -> Result<bool, Report> {
    if !io::stdin().is_terminal() {
        return Err(Report::new(Exit::Usage, "nobody is there to agree").hint("to write the change, add --yes"));
    }
    terminal.note("Write it? [y/N] ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The entry as text, with the member around it.
fn entry(client: McpClient, command: &Value) -> String {
    let list = client.list();
    if client == McpClient::Codex {
        // A JSON text is a TOML string, and an array of them an array.
        return format!("[{list}.{NAME}]\ncommand = {}\nargs = {}\n", command["command"], command["args"]);
    }
    format!("{:#}", json!({ list: { NAME: command } }))
}

/// The change that adds the server. `None`: the file has it.
fn change(client: McpClient, earlier: &str, command: &Value) -> Result<Option<Change>, String> {
    let (list, added) = (client.list(), entry(client, command));
    if client == McpClient::Codex {
        let file: toml::Table = earlier.parse().map_err(|error| format!("it is not TOML: {error}"))?;
        let found = file.get(list).and_then(|servers| servers.get(NAME));
        let Some(found) = found else {
            let gap = if earlier.is_empty() || earlier.ends_with("\n\n") { "" } else { "\n" };
            let end = if earlier.is_empty() || earlier.ends_with('\n') { "" } else { "\n" };
            let text = format!("{earlier}{end}{gap}{added}");
            // The file can have the table in a form that takes no more members.
            text.parse::<toml::Table>().map_err(|_| format!("its {list} has a form that takes no more members"))?;
            return Ok(Some(Change { removed: None, text, added }));
        };
        let wanted: toml::Table = added.parse().map_err(|error| format!("a path cannot be written: {error}"))?;
        let is_same = wanted.get(list).and_then(|servers| servers.get(NAME)) == Some(found);
        return if is_same { Ok(None) } else { Err(format!("it has another server with the name {NAME}")) };
    }
    let text = if earlier.trim().is_empty() { "{}\n" } else { earlier };
    let file = Object::read(text.trim(), "\n")
        .map_err(|error| format!("it is not a JSON object without comments: {error}"))?;
    let servers = file.members.get(list).map(|servers| Object::read(servers.get(), &file.gap)).transpose();
    let servers = servers.map_err(|_| format!("its member {list} is not an object"))?;
    let found: Option<Value> = match servers.as_ref().and_then(|servers| servers.members.get(NAME)) {
        Some(found) => Some(serde_json::from_str(found.get()).map_err(|error| error.to_string())?),
        None => None,
    };
    if found.as_ref() == Some(command) {
        return Ok(None);
    }
    let changed = match &servers {
        Some(servers) => file.with(list, &servers.with(NAME, &servers.laid_out(command))),
        None => file.with(list, &file.laid_out(&json!({ NAME: command }))),
    };
    let removed = found.map(|found| entry(client, &found));
    Ok(Some(Change { removed, added, text: text.replacen(text.trim(), &changed, 1) }))
}

/// An object of JSON as a text. A change of one member leaves all other bytes.
struct Object<'a> {
    text: &'a str,
    members: BTreeMap<String, &'a RawValue>,
    /// The white space before each member.
    gap: String,
}

impl<'a> Object<'a> {
    /// `line` is the white space before the object's own line.
    fn read(text: &'a str, line: &str) -> serde_json::Result<Self> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
        let first = text.get(1..).unwrap_or_default();
        let gap = match first.find('"') {
            Some(at) if !members.is_empty() => first.get(..at).unwrap_or_default().to_owned(),
            _ if line.contains('\n') => format!("{line}  "),
            _ => line.to_owned(),
        };
        Ok(Self { text, members, gap })
    }

    /// A value in the manner of the object: on one line, or on several.
    fn laid_out(&self, value: &Value) -> String {
        if self.gap.contains('\n') { format!("{value:#}").replace('\n', &self.gap) } else { value.to_string() }
    }

    /// The text with this member. A new one is the last.
    fn with(&self, name: &str, value: &str) -> String {
        if let Some(found) = self.members.get(name) {
            let begin = found.get().as_ptr().addr() - self.text.as_ptr().addr();
            let (before, rest) = self.text.split_at(begin);
            return format!("{before}{value}{}", rest.get(found.get().len()..).unwrap_or_default());
        }
        let inner = self.text.strip_suffix('}').unwrap_or(self.text);
        let kept = inner.trim_end();
        let space = if self.gap.contains('\n') { " " } else { "" };
        let member = format!("{}{}:{space}{value}", self.gap, json!(name));
        if self.members.is_empty() {
            let line = self.gap.strip_suffix("  ").unwrap_or(&self.gap);
            return format!("{{{member}{line}}}");
        }
        format!("{kept},{member}{}}}", inner.get(kept.len()..).unwrap_or_default())
    }
}

/// Writes the file if it is still the earlier one, which it keeps. After a kill, the file is the earlier or the new one.
fn write(file: &Path, earlier: &str, text: &str) -> io::Result<Option<PathBuf>> {
    if fs::read_to_string(file).unwrap_or_default() != earlier {
        return Err(io::Error::other("another program has changed it meanwhile"));
    }
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    let kept = match fs::metadata(file) {
        Ok(metadata) => {
            new.as_file().set_permissions(metadata.permissions())?;
            Some(keep(file, earlier)?)
        }
        Err(_) => None,
    };
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error)?;
    Ok(kept)
}

/// Keeps the earlier content beside the file, under a name that is free.
fn keep(file: &Path, earlier: &str) -> io::Result<PathBuf> {
    for number in 1.. {
        let mut name = file.as_os_str().to_owned();
        name.push(".before-toolgate");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        match fs::File::create_new(&name) {
            Ok(mut kept) => {
                kept.set_permissions(fs::metadata(file)?.permissions())?;
                kept.write_all(earlier.as_bytes())?;
                return Ok(name.into());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(client: McpClient) -> Value {
        client.server(&["/bin/toolgate", "mcp", "--data", "/d \"x\""].map(str::to_owned))
    }

    #[test]
    fn all_other_bytes_of_a_file_stay() {
        let big = "12345678901234567890123.10";
        // `|` is where the server comes.
        for earlier in [
            "{\"z\":1,\"mcpServers\":{\"other\":{\"n\":BIG}|},\"a\":[2]}",
            "{ \"mcpServers\" : { } , \"n\" : BIG }",
            "\n{\r\n\t\"n\": 1.50e1,\r\n\r\n\t\"mcpServers\": {\r\n\t\t\"o\\u0074her\": [ BIG,1 ]|\r\n\t}\r\n}\r\n\r\n",
            "{\n    \"n\": BIG,\n    \"b\": { }|\n}",
            "{\"n\":BIG|}\n",
            "{\"mcpServers\":{\"toolgate\": {\"command\":\"old\"} ,\"n\":BIG}, \"mcp\":{\"toolgate\":1}}",
        ] {
            let earlier = earlier.replace("BIG", big);
            let before = earlier.replace('|', "");
            let change = change(McpClient::Cursor, &before, &server(McpClient::Cursor)).unwrap().unwrap();
            let file: Value = serde_json::from_str(&change.text).unwrap();
            assert_eq!(file["mcpServers"]["toolgate"], server(McpClient::Cursor), "{}", change.text);
            let (kept, rest) = match earlier.split_once('|') {
                Some(parts) => parts,
                None if before.contains("old") => before.split_once("{\"command\":\"old\"}").unwrap(),
                None => before.split_once(" }").unwrap(),
            };
            assert!(change.text.starts_with(kept) && change.text.ends_with(rest), "{}", change.text);
            assert_eq!(change.removed.is_some(), before.contains("old"));
            assert_eq!(super::change(McpClient::Cursor, &change.text, &server(McpClient::Cursor)), Ok(None));
        }
    }

    #[test]
    fn server_is_laid_out_as_its_file() {
        let laid_out = |earlier| change(McpClient::Cursor, earlier, &json!({ "command": "c" })).unwrap().unwrap().text;
        let new = "{\n  \"mcpServers\": {\n    \"toolgate\": {\n      \"command\": \"c\"\n    }\n  }\n}\n";
        assert_eq!(laid_out(""), new);
        assert_eq!(laid_out("{\n  \"mcpServers\": {}\n}\n"), new);
        assert_eq!(laid_out("{\"a\":1}"), "{\"a\":1,\"mcpServers\":{\"toolgate\":{\"command\":\"c\"}}}");
    }

    #[test]
    fn change_is_made_once_and_a_different_server_is_shown() {
        for client in McpClient::value_variants() {
            let first = change(*client, "", &server(*client)).unwrap().unwrap();
            assert_eq!(change(*client, &first.text, &server(*client)), Ok(None), "{client:?}");
            let other = change(*client, &first.text, &client.server(&["/other".to_owned()]));
            match other {
                Ok(Some(other)) => assert!(other.removed.unwrap().contains("/bin/toolgate"), "{client:?}"),
                other => assert_eq!((*client, other.is_err()), (McpClient::Codex, true)),
            }
        }
    }

    #[test]
    fn comments_of_a_codex_file_stay() {
        let earlier = "# mine\nmodel = \"x\" # also mine";
        let change = change(McpClient::Codex, earlier, &server(McpClient::Codex)).unwrap().unwrap();
        assert!(change.text.starts_with(&format!("{earlier}\n\n[mcp_servers.toolgate]\n")), "{}", change.text);
        let file: toml::Table = change.text.parse().unwrap();
        assert_eq!(file["mcp_servers"]["toolgate"]["args"][2].as_str(), Some("/d \"x\""));
    }

    #[test]
    fn file_that_cannot_be_read_is_refused() {
        for (client, earlier) in [
            (McpClient::Vscode, "{ // mine\n}"),
            (McpClient::Cursor, "[]"),
            (McpClient::Cursor, r#"{"mcpServers":[]}"#),
            (McpClient::Codex, "model = "),
            (McpClient::Codex, "mcp_servers = { x = { command = \"x\" } }\n"),
        ] {
            assert!(change(client, earlier, &server(client)).is_err(), "{earlier}");
        }
    }

    #[test]
    fn earlier_files_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/mcp.json");
        assert_eq!(write(&file, "", "1").unwrap(), None);
        let (second, third) = (write(&file, "1", "2").unwrap().unwrap(), write(&file, "2", "3").unwrap().unwrap());
        assert_eq!(second.file_name().unwrap(), "mcp.json.before-toolgate");
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        assert_eq!((read(&second), read(&third), read(&file)), ("1".into(), "2".into(), "3".into()));
        assert!(write(&file, "2", "4").is_err(), "another program has written 3");
        assert_eq!(read(&file), "3");
    }
}
