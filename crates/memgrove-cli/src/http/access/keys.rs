//! The tokens and where they are kept: one of the server's own, made at the first start, and those
//! that the user gave to others.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use memgrove::ids::{Ids, SystemIds};
use memgrove::vfs::RealFs;
use memgrove::{Error, Kind, Result};
use sha2::{Digest, Sha256};

use super::Scope;
use crate::modes;
use crate::settings::read_small;
use crate::signing::BETWEEN;

/// The name of the server's own token, and the file that holds it.
const OWN: &str = "owner";
const OWN_FILE: &str = "serve-token";
/// The file of further tokens.
const OTHERS_FILE: &str = "tokens.toml";

/// One token and what it opens.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Key {
    /// Who it was given to.
    pub(crate) name: String,
    /// The secret itself.
    pub(crate) token: String,
    /// What it may do.
    #[serde(default)]
    pub(crate) scope: Scope,
    /// The only space that it opens.
    #[serde(default)]
    pub(crate) space: Option<String>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Key>,
}

/// Every token that is known; the server's own is the first.
pub(crate) struct Keys(Vec<Key>);

impl Keys {
    /// Reads the tokens from the folder of the program's state; the server's own is made if it is
    /// missing.
    ///
    /// # Errors
    /// `Corrupt` for a file of tokens that cannot be understood; else as the machine says.
    pub(crate) fn read(folder: &Path) -> Result<Keys> {
        let path = folder.join(OWN_FILE);
        let token = own(folder, &path).map_err(|error| Error::from_io(error, path.display()))?;
        let own = Key { name: OWN.to_owned(), token, scope: Scope::Write, space: None };
        let path = folder.join(OTHERS_FILE);
        let others = match read_small(&path) {
            Ok(text) => toml::from_str::<File>(&text).map_err(|error| {
                Error::new(Kind::Corrupt, format!("`{}`: {}", path.display(), error.message())).hint(
                    "each [[token]] has a name, a token, and optionally a scope (read or write) and a space",
                )
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::default(),
            Err(error) => return Err(Error::from_io(error, path.display())),
        };
        if modes::is_open_to_others(&path) {
            let path = path.display();
            crate::notice(&format!("other users of this machine may read {path}: run `chmod 600` on it"));
        }
        if let Some(weak) = others.token.iter().find(|key| key.token.len() < 32) {
            return Err(Error::new(Kind::Invalid, format!("the token of `{}` is too short", weak.name))
                .hint("use at least 32 random characters"));
        }
        let keys: Vec<Key> = std::iter::once(own).chain(others.token).collect();
        for (number, key) in keys.iter().enumerate() {
            let taken = keys[..number].iter().any(|other| other.name == key.name);
            if let Some(other) = keys[..number].iter().find(|other| other.token == key.token) {
                let (name, other) = (key.name.escape_debug(), other.name.escape_debug());
                return Err(Error::new(Kind::Invalid, format!("`{other}` and `{name}` have the same token"))
                    .hint("a token identifies its owner: give each its own"));
            }
            let wrong = |c: char| c == BETWEEN || c.is_control();
            if taken || key.name.trim().is_empty() || key.name.contains(wrong) {
                let name = key.name.escape_debug();
                return Err(Error::new(Kind::Invalid, format!("`{name}` cannot be the name of a token"))
                    .hint("names are unique and have no `/`; `owner` is reserved"));
            }
        }
        Ok(Keys(keys))
    }

    #[cfg(test)]
    /// Tokens for a test; the first is the server's own.
    pub(crate) fn of(keys: Vec<Key>) -> Keys {
        Keys(keys)
    }

    /// The server's own.
    pub(crate) fn own(&self) -> &Key {
        &self.0[0]
    }

    /// The key with this token.
    pub(crate) fn by_token(&self, given: &str) -> Option<&Key> {
        self.0.iter().find(|key| same(&key.token, given))
    }

    /// The key whose cookie this is.
    pub(crate) fn by_cookie(&self, given: &str) -> Option<&Key> {
        Some(self.own()).filter(|key| same(&key.cookie(), given))
    }
}

impl Key {
    /// The cookie that a browser keeps: valid beyond a restart of the server, but not the token itself.
    pub(crate) fn cookie(&self) -> String {
        URL_SAFE_NO_PAD.encode(Sha256::digest(format!("memgrove cookie {}", self.token)))
    }
}

/// Whether two secrets are the same. Their hashes are compared, so that the time it takes says
/// nothing about the secret.
pub(crate) fn same(secret: &str, given: &str) -> bool {
    Sha256::digest(secret) == Sha256::digest(given)
}

/// 256 random bits, as text.
pub(crate) fn secret() -> String {
    URL_SAFE_NO_PAD.encode([SystemIds.random(), SystemIds.random()].concat())
}

#[allow(clippy::disallowed_methods)] // A secret of this machine, not a memory: it is not in the store.
fn own(folder: &Path, path: &Path) -> io::Result<String> {
    RealFs::create_root(folder)?;
    for _ in 0..8 {
        match read_small(path) {
            Ok(text) if text.trim().len() >= 32 => return Ok(text.trim().to_owned()),
            // Half a token was not written to its end: make another.
            Ok(_) => fs::remove_file(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let new = folder.join(format!(".{OWN_FILE}.{}", secret()));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&new)?;
        writeln!(file, "{}", secret()).and_then(|()| file.sync_all())?;
        // Of several servers that start at once, the first one's token counts.
        let linked = fs::hard_link(&new, path);
        let _ = fs::remove_file(&new);
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Err(io::Error::other("the token cannot be kept"))
}
