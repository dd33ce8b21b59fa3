//! The files of upstream servers, which no plugin may reach.

use std::path::{Path, PathBuf};

use super::{Config, UpstreamTable};

impl Config {
    /// The files and folders that decide what upstreams do, or that hold their secrets.
    pub(super) fn files_of_upstreams(&self) -> Vec<(String, PathBuf)> {
        let beside = self.source.beside();
        let of_each = self.upstream.iter().flat_map(|(name, table)| files_of_upstream(name, table, beside));
        let pins = (!self.upstream.is_empty())
            .then(|| ("the accepted tools of upstreams in".to_owned(), self.upstream_pins()));
        of_each.chain(pins).collect()
    }
}

/// The files that decide which program an upstream runs, outside the sandbox, and its secrets.
fn files_of_upstream(name: &str, table: &UpstreamTable, beside: &Path) -> Vec<(String, PathBuf)> {
    let folder = table.folder.as_ref().map_or_else(|| beside.to_owned(), |folder| beside.join(folder));
    let secrets = table.env.values().filter_map(|value| value.file.as_ref());
    let mut files: Vec<_> = secrets.map(|file| ("the secret in".to_owned(), beside.join(file))).collect();
    // Without a folder of its own, the server runs in the folder of the configuration. The configuration file is checked.
    if table.folder.is_some() {
        files.push((format!("the folder of the upstream {name}"), folder.clone()));
    }
    // A program without a `/` is searched. A script without one is a file in the folder. An option can contain a path:
    // `--import=./more.mjs`. The host cannot tell a script from another argument.
    let paths = table.command.iter().enumerate().flat_map(|(position, word)| {
        let words = [Some(word.as_str()), word.split_once('=').map(|(_, path)| path)].into_iter().flatten();
        words.filter(move |word| word.contains('/') || (position > 0 && !word.is_empty()))
    });
    let paths = paths.map(|word| folder.join(word));
    let search = table.env.get("PATH").and_then(|path| path.value.as_ref());
    let search = search.into_iter().flat_map(|path| path.split(':')).map(|step| folder.join(step));
    files.extend(paths.chain(search).map(|path| (format!("the command of the upstream {name}, which names"), path)));
    files
}
