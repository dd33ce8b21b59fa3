//! The token of `toolgate mcp`. An MCP client must not have the admin token. With that token, its calls would be calls of the
//! operator, and a host does not let the operator approve their own calls.

use std::io::Write as _;

use domain::{PrincipalId, Timestamp, principal::Role};
use server::Authenticate as _;

use super::{MAX_TOKENS, TokenError, TokenHolder, Tokens, new_token};
use crate::files::{existing, private};

/// The file in the data folder with the token.
const FILE: &str = "mcp-token";

impl Tokens {
    /// The token of the MCP clients on this machine, with the role `caller` only. The first call makes it.
    ///
    /// # Errors
    /// [`TokenError`].
    pub async fn of_mcp_clients(&self, now: Timestamp) -> Result<String, TokenError> {
        let path = self.folder.join(FILE);
        let io = |attempted| {
            let path = path.clone();
            move |reason| TokenError::Io { attempted, path, reason }
        };
        if let Some(token) = existing(std::fs::read_to_string(&path)).map_err(io("read"))? {
            let token = token.trim();
            self.read_again().await?;
            return self.principal(token).map(|_| token.to_owned()).ok_or(TokenError::Revoked(path));
        }
        let token = new_token()?;
        let taken: Vec<PrincipalId> = self.list().await?.into_iter().map(|holder| holder.name).collect();
        let names = (1..=MAX_TOKENS).map(|n| if n == 1 { "mcp".to_owned() } else { format!("mcp-{n}") });
        let name = names.filter_map(|name| PrincipalId::new(&name).ok()).find(|name| !taken.contains(name));
        let holder = TokenHolder {
            name: name.ok_or(TokenError::TooMany)?,
            roles: vec![Role::Caller],
            groups: Vec::new(),
            conversation: None,
            created_at: now,
        };
        // The holder is stored before the file. A kill between the two leaves a valid token that nobody knows.
        let name = holder.name.clone();
        match self.add(holder, &token).await {
            // Another process has just taken this name. The next try takes another one.
            Err(TokenError::NameTaken(_)) => return Box::pin(self.of_mcp_clients(now)).await,
            added => added?,
        }
        let new = self.folder.join(format!("{FILE}.{name}"));
        let written = private(&new).and_then(|mut file| {
            file.write_all(format!("{token}\n").as_bytes())?;
            file.sync_all()?;
            std::fs::hard_link(&new, &path)
        });
        existing(std::fs::remove_file(&new)).map_err(io("write"))?;
        match written {
            Ok(()) => Ok(token),
            // Another process has just made the file, and its token is used.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.revoke(&name).await?;
                Box::pin(self.of_mcp_clients(now)).await
            }
            Err(error) => Err(io("write")(error)),
        }
    }
}
