//! The git repository around a store, as far as it merges memories.

use std::path::{Path, PathBuf};

use memgrove::backend::{Finding, Level};

use crate::config::main_checkout;
use crate::settings::read_small;

/// The attribute that tells git to merge a file with memgrove.
const ATTRIBUTE: &str = "merge=memgrove";
/// The line in git's configuration that begins the merge driver.
const DRIVER: &str = "[merge \"memgrove\"]";

/// The work tree around a folder.
fn around(root: &Path) -> Option<&Path> {
    root.ancestors().find(|folder| folder.join(".git").exists())
}

/// Whether branches of the repository around a store are to be merged by this program.
pub(crate) fn merges(root: &Path) -> bool {
    let Some(top) = around(root) else { return false };
    let within = root.ancestors().take_while(|folder| folder.starts_with(top));
    within.map(|folder| folder.join(".gitattributes")).any(|file| says(file, ATTRIBUTE))
}

fn says(file: PathBuf, words: &str) -> bool {
    read_small(&file).is_ok_and(|text| text.contains(words))
}

/// What is wrong with how git merges a store: a clone has the attributes but not the configured driver, and
/// git then silently merges line by line.
pub(crate) fn check(root: &Path, home: Option<&Path>) -> Option<Finding> {
    let top = around(root)?;
    let main = main_checkout(top).unwrap_or_else(|| top.to_owned());
    let own = home.into_iter().flat_map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]);
    let told = own.chain([main.join(".git/config")]).any(|file| says(file, DRIVER));
    (merges(root) && !told).then(|| Finding {
        level: Level::Warning,
        at: ".gitattributes".to_owned(),
        what: "git is set to merge memories with memgrove here, but has no such merge driver".to_owned(),
        hint: "git config merge.memgrove.driver \"memgrove merge-driver %O %A %B %P\"".to_owned(),
    })
}
