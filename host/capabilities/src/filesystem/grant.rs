//! Grants of folders: which, and whether a plugin may change them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Folder, FolderHandle};
use crate::request::{GrantRequest, InvalidGrant, listing, string};
use crate::words::Mount;

/// A request for a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestedFolder {
    /// The path at which the plugin sees the folder.
    pub at: Mount,
    /// Whether it also writes.
    #[serde(default)]
    pub write: bool,
    pub why: String,
}

/// A folder that a plugin may use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderTable {
    /// Where it is on this machine. Relative to the configuration's file; it has to exist when the host starts.
    pub path: PathBuf,
    /// Under which path the plugin sees it, such as "/data".
    pub at: Mount,
    /// Whether the plugin may change what is in it. Default: false.
    #[serde(default)]
    pub write: bool,
}

/// The placeholder for a folder that the operator has to name.
const SOME_FOLDER: &str = "/a/folder/of/this/machine";

fn access(write: bool) -> &'static str {
    if write { "read and write" } else { "read only" }
}

impl GrantRequest for RequestedFolder {
    type All = Vec<Self>;
    type Granted = Vec<Folder>;
    type Table = Vec<FolderTable>;
    /// The folders in the order of the table.
    type Opened = Vec<FolderHandle>;

    /// Changes to real files are not among the results of host functions, so a call with folders may not suspend.
    const IS_REPLAYABLE: bool = false;

    const EXAMPLE: Option<&'static str> =
        Some("grants.folders = [{ path = \"/a/folder/of/this/machine\", at = \"/data\" }]");

    fn reaches_outside(_: &Self::Granted) -> bool {
        false
    }

    fn may_change(granted: &Self::Granted) -> bool {
        granted.iter().any(|folder| folder.write)
    }

    fn words(&self) -> String {
        format!("folder: {}, {}", self.at, access(self.write))
    }

    fn name(&self) -> Option<String> {
        Some(format!("the folder {}", self.at))
    }

    fn lines(requests: &[Self]) -> Vec<String> {
        listing("folders", requests, |request| {
            let (at, write) = (string(&request.at), request.write);
            format!("{{ path = \"{SOME_FOLDER}\", at = {at}, write = {write} }}")
        })
    }

    fn made_up(_requests: Option<&[Self]>) -> Self::Granted {
        Vec::new()
    }

    fn intersection(granted: &Self::Granted, requests: &[Self]) -> Self::Granted {
        let folder = |granted: &Folder| {
            let requested = requests.iter().find(|requested| requested.at.as_str() == granted.at)?;
            Some(Folder { write: granted.write && requested.write, ..granted.clone() })
        };
        granted.iter().filter_map(folder).collect()
    }

    fn is_covered(&self, granted: &Self::Granted) -> bool {
        granted.iter().any(|granted| granted.at == self.at.as_str() && (granted.write || !self.write))
    }

    fn each(granted: &Self::Granted, _shown: fn(&str) -> String) -> Vec<(Self::Granted, String)> {
        let text = |Folder { path, at, write, .. }: &Folder| {
            format!("folder: {at}, {}, which is {}", access(*write), path.display())
        };
        granted.iter().map(|folder| (vec![folder.clone()], text(folder))).collect()
    }

    fn granted(table: &Self::Table, beside: &Path, opened: &Self::Opened) -> Self::Granted {
        let folder = |(position, table): (usize, &FolderTable)| Folder {
            path: beside.join(&table.path),
            at: table.at.to_string(),
            write: table.write,
            handle: opened.get(position).cloned().unwrap_or_default(),
        };
        table.iter().enumerate().map(folder).collect()
    }

    fn check_table(table: &Self::Table) -> Result<(), InvalidGrant> {
        let mut mounts = BTreeSet::new();
        for (position, table) in table.iter().enumerate() {
            if !mounts.insert(&table.at) {
                let message = format!("two folders are at {}", table.at);
                let keys = [position.to_string(), "at".to_owned()];
                return Err(InvalidGrant::at(keys, message, "give one of them another path"));
            }
        }
        Ok(())
    }

    fn add_to(&self, table: &mut Self::Table) {
        match table.iter_mut().find(|folder| folder.at == self.at) {
            Some(folder) => folder.write |= self.write,
            None => {
                table.push(FolderTable { path: SOME_FOLDER.into(), at: self.at.clone(), write: self.write });
            }
        }
    }
}
