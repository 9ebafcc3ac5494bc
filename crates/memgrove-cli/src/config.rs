//! Where things are on this machine: the only reader of the environment, the home folder and the
//! working folder.

mod around;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use memgrove::{Error, Kind, Result};

use crate::zone::ZoneVariables;

pub(crate) use around::{main_checkout, resolved};

/// The folder that holds a store, in a project or at home.
pub(crate) const STORE_FOLDER: &str = ".memgrove";

/// What the machine says, read once.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// The working folder.
    pub(crate) working: Option<PathBuf>,
    /// The home folder.
    pub(crate) home: Option<PathBuf>,
    /// `MEMGROVE_STORE`.
    pub(crate) store: Option<OsString>,
    /// `MEMGROVE_SESSION`: names the conversation in the history.
    pub(crate) session: Option<String>,
    /// `XDG_STATE_HOME`.
    pub(crate) state_home: Option<PathBuf>,
    /// `XDG_CACHE_HOME`.
    pub(crate) cache_home: Option<PathBuf>,
    /// `MEMORY_FILE_PATH`: the file of an MCP memory server, to be used in place.
    pub(crate) memory_file: Option<PathBuf>,
    /// Who tends the notes: `MEMGROVE_AGENT…`.
    pub(crate) agent: AgentVariables,
    /// The folder for temporary files.
    pub(crate) temporary: PathBuf,
    /// `MEMGROVE_BACKEND`: the backend, instead of the one that the store names.
    pub(crate) backend: Option<String>,
    /// `MEMGROVE_S3_BUCKET` and its kin.
    pub(crate) bucket: BucketVariables,
    /// `MEMGROVE_CACHE_TTL`: for how many seconds what was seen of a far store is believed.
    pub(crate) cache_ttl: Option<String>,
    /// The variables of Amazon's, Google's, Azure's and Anthropic's own tools (`AWS_…`), in lower case.
    pub(crate) providers: BTreeMap<String, String>,
    /// The zone of the user.
    pub(crate) zone: ZoneVariables,
}

/// Which bucket, as the environment says it.
#[derive(Debug, Clone, Default)]
pub(crate) struct BucketVariables {
    /// `MEMGROVE_S3_BUCKET`.
    pub(crate) bucket: Option<String>,
    /// `MEMGROVE_S3_PREFIX`.
    pub(crate) prefix: Option<String>,
    /// `MEMGROVE_S3_REGION`.
    pub(crate) region: Option<String>,
    /// `MEMGROVE_S3_ENDPOINT`.
    pub(crate) endpoint: Option<String>,
    /// `MEMGROVE_S3_PATH_STYLE`: `true` or `false`.
    pub(crate) path_style: Option<String>,
}

impl Environment {
    /// Reads the environment of this process.
    #[allow(clippy::disallowed_methods)] // The one place that may: everything else is handed this.
    pub(crate) fn read() -> Self {
        let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name: &str| named(name).and_then(|value| value.into_string().ok());
        let bucket = BucketVariables {
            bucket: text("MEMGROVE_S3_BUCKET"),
            prefix: text("MEMGROVE_S3_PREFIX"),
            region: text("MEMGROVE_S3_REGION"),
            endpoint: text("MEMGROVE_S3_ENDPOINT"),
            path_style: text("MEMGROVE_S3_PATH_STYLE"),
        };
        let of_provider = |(name, value): (OsString, OsString)| {
            let name = name.into_string().ok()?.to_ascii_lowercase();
            let known =
                ["aws_", "google_", "azure_", "anthropic_"].iter().any(|provider| name.starts_with(provider));
            known.then_some((name, value.into_string().ok()?))
        };
        Environment {
            working: std::env::current_dir().ok(),
            home: named("HOME").map(PathBuf::from).or_else(std::env::home_dir),
            store: named("MEMGROVE_STORE"),
            session: named("MEMGROVE_SESSION").and_then(|value| value.into_string().ok()),
            state_home: named("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()),
            cache_home: named("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()),
            memory_file: named("MEMORY_FILE_PATH").map(PathBuf::from),
            agent: AgentVariables::read(|name| named(name).and_then(|value| value.into_string().ok())),
            temporary: std::env::temp_dir(),
            backend: text("MEMGROVE_BACKEND"),
            bucket,
            cache_ttl: text("MEMGROVE_CACHE_TTL"),
            providers: std::env::vars_os().filter_map(of_provider).collect(),
            // An empty one says something: UTC.
            zone: ZoneVariables { name: std::env::var("TZ").ok(), folder: named("TZDIR").map(PathBuf::from) },
        }
    }

    /// The folder for what must not lie in a store: journals and locks of folders used in place.
    pub(crate) fn state_folder(&self) -> Result<PathBuf> {
        let base = match (&self.state_home, &self.home) {
            (Some(state), _) => state.clone(),
            (None, Some(home)) => home.join(".local/state"),
            (None, None) => return Err(homeless()),
        };
        Ok(base.join("memgrove"))
    }

    /// The folder for what can be made anew at any time, if this machine has one.
    pub(crate) fn cache_folder(&self) -> Option<PathBuf> {
        let base = self.cache_home.clone().or_else(|| self.home.as_ref().map(|home| home.join(".cache")));
        base.map(|base| base.join("memgrove"))
    }

    /// Makes the user's path absolute and normalises it, which drops every `.` in it.
    pub(crate) fn absolute(&self, given: &Path) -> Result<PathBuf> {
        match &self.working {
            _ if given.is_absolute() => Ok(given.components().collect()),
            Some(working) => Ok(working.join(given).components().collect()),
            None => Err(Error::new(Kind::Io, "the working folder is gone").hint("use an absolute path")),
        }
    }

    /// The store at a path or address that was named.
    ///
    /// # Errors
    /// `Io` for a relative path where there is no working folder.
    pub(crate) fn named(&self, path: &Path, how: How) -> Result<Place> {
        Ok(Place { root: if is_url(path) { path.to_owned() } else { self.absolute(path)? }, how })
    }

    /// Finds the store: as told, else upward from the working folder, else at home.
    ///
    /// # Errors
    /// `Io` where there is no working folder or no home to look in.
    pub(crate) fn find_store(&self, flag: Option<&Path>) -> Result<Place> {
        let told = flag
            .map(|path| (path, How::Flag))
            .or(self.store.as_ref().map(|value| (Path::new(value), How::Variable)));
        if let Some((path, how)) = told {
            return self.named(path, how);
        }
        let home = self.home.as_ref().map(|home| home.join(STORE_FOLDER));
        match (self.working.as_deref().and_then(|from| self.upward(from)), home) {
            (Some(root), home) if home.as_ref() != Some(&root) => Ok(Place { root, how: How::Upward }),
            (_, Some(root)) => Ok(Place { root, how: How::Home }),
            (_, None) => Err(homeless()),
        }
    }
}

/// Which agent tends the notes, and how its model is reached. Only the environment says so: a store
/// may be somebody else's.
#[derive(Clone, Default)]
pub(crate) struct AgentVariables {
    /// `MEMGROVE_AGENT`: rules, anthropic or openai.
    pub(crate) name: Option<String>,
    /// `MEMGROVE_AGENT_MODEL`.
    pub(crate) model: Option<String>,
    /// `MEMGROVE_AGENT_ENDPOINT`.
    pub(crate) endpoint: Option<String>,
    /// `MEMGROVE_AGENT_TIMEOUT`, in seconds.
    pub(crate) timeout: Option<String>,
    /// `MEMGROVE_AGENT_PRICE`: dollars for a million tokens in and out.
    pub(crate) price: Option<String>,
    /// `MEMGROVE_AGENT_STREAM`: whether answers come as a stream.
    pub(crate) stream: bool,
    /// `MEMGROVE_AGENT_KEY`, `ANTHROPIC_API_KEY` and `OPENAI_API_KEY`.
    keys: [Option<String>; 3],
}

impl AgentVariables {
    fn read(named: impl Fn(&str) -> Option<String>) -> Self {
        let own = |name: &str| named(&format!("MEMGROVE_AGENT{name}"));
        AgentVariables {
            name: own(""),
            model: own("_MODEL"),
            endpoint: own("_ENDPOINT"),
            timeout: own("_TIMEOUT"),
            price: own("_PRICE"),
            stream: own("_STREAM").is_some(),
            keys: [own("_KEY"), named("ANTHROPIC_API_KEY"), named("OPENAI_API_KEY")],
        }
    }

    /// The key for an agent. A key that is meant for one vendor goes to no other endpoint.
    pub(crate) fn key(&self, agent: &str) -> Option<String> {
        let [own, anthropic, openai] = &self.keys;
        let usual = match (agent, &self.endpoint) {
            ("anthropic", None) => anthropic.clone(),
            ("openai", None) => openai.clone(),
            _ => None,
        };
        own.clone().or(usual)
    }
}

impl std::fmt::Debug for AgentVariables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentVariables")
            .field("name", &self.name)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

fn homeless() -> Error {
    Error::new(Kind::Io, "there is no home folder").hint("name the store with --store PATH or MEMGROVE_STORE")
}

/// Where a store is, or would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The folder.
    pub(crate) root: PathBuf,
    /// How it was found.
    pub(crate) how: How,
}

impl Place {
    /// The folder that the store belongs to: the one around a `.memgrove`, or the store's own.
    pub(crate) fn project(&self) -> Option<&Path> {
        match self.root.ends_with(STORE_FOLDER) {
            true => self.root.parent(),
            false => Some(&self.root),
        }
    }

    /// Whether the store is no folder of this machine.
    pub(crate) fn is_url(&self) -> bool {
        is_url(&self.root)
    }
}

/// Whether a store was named by the address of a bucket or a memory store.
pub(crate) fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://"))
}

/// How a store was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// By `--store`.
    Flag,
    /// By another option, told as the end of a sentence.
    Other(&'static str),
    /// By `MEMGROVE_STORE`.
    Variable,
    /// In the working folder or above it.
    Upward,
    /// Nowhere else, so at home.
    Home,
}

impl How {
    /// How it was found, as the end of a sentence.
    pub(crate) fn because(self) -> &'static str {
        match self {
            How::Flag => "named by --store",
            How::Other(told) => told,
            How::Variable => "named by MEMGROVE_STORE",
            How::Upward => "found in or above the working folder",
            How::Home => "the store in the home folder",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    fn environment(working: &Path, home: &Path) -> Environment {
        Environment {
            working: Some(working.to_owned()),
            home: Some(home.to_owned()),
            ..Environment::default()
        }
    }

    fn made(path: PathBuf) -> PathBuf {
        std::fs::create_dir_all(&path).expect("a temporary folder can be filled");
        path
    }

    #[test]
    fn the_nearest_store_wins_and_home_is_last() {
        let top = tempfile::tempdir().expect("a temporary folder");
        let home = made(top.path().join("home"));
        let deep = made(top.path().join("project/a/b"));
        let found = |env: &Environment, flag: Option<&str>| {
            let place = env.find_store(flag.map(Path::new)).expect("there is a home");
            (place.root, place.how)
        };
        let mut env = environment(&deep, &home);
        assert_eq!(found(&env, None), (home.join(".memgrove"), How::Home));
        let project = made(top.path().join("project/.memgrove"));
        assert_eq!(found(&env, None), (project, How::Upward));
        let near = made(deep.join(".memgrove"));
        assert_eq!(found(&env, None), (near, How::Upward));
        let itself = made(top.path().join("project/a/b/c/store/files"));
        env.working = Some(itself.clone());
        let itself = itself.parent().expect("it was made").to_owned();
        let settings = itself.join(settings::FILE);
        #[allow(clippy::disallowed_methods)] // The settings of some other program of that name.
        std::fs::write(&settings, "[server]\n").expect("a writable folder");
        assert_eq!(found(&env, None), (deep.join(".memgrove"), How::Upward));
        #[allow(clippy::disallowed_methods)] // A store that was made where it was named.
        std::fs::write(&settings, "format = 1\n").expect("a writable folder");
        assert_eq!(found(&env, None), (itself.clone(), How::Upward));
        env.working = Some(home.clone());
        made(home.join(".memgrove"));
        assert_eq!(found(&env, None), (home.join(".memgrove"), How::Home));
        env.working = Some(home.join(".memgrove"));
        assert_eq!(found(&env, None), (home.join(".memgrove"), How::Home));
        env.working = Some(itself.clone());
        assert_eq!(found(&env, Some("./a/.")), (itself.join("a"), How::Flag));
        env.working = Some(deep.clone());
        env.store = Some("elsewhere".into());
        assert_eq!(found(&env, None), (deep.join("elsewhere"), How::Variable));
        assert_eq!(found(&env, Some("/told")), ("/told".into(), How::Flag));
    }

    #[test]
    fn a_linked_worktree_shares_the_store_of_its_main_checkout() {
        let top = tempfile::tempdir().expect("a temporary folder");
        let main = made(top.path().join("main/.git/worktrees/topic"));
        let store = made(top.path().join("main/.memgrove"));
        let tree = made(top.path().join("trees/topic/src"));
        let link = top.path().join("trees/topic/.git");
        #[allow(clippy::disallowed_methods)] // A test's own file, as git would write it.
        std::fs::write(&link, format!("gitdir: {}\n", main.display())).expect("a writable folder");
        let env = environment(&tree, top.path());
        assert_eq!(env.find_store(None).expect("a home").root, store);
        #[allow(clippy::disallowed_methods)] // A submodule's link leads elsewhere.
        std::fs::write(&link, "gitdir: ../../main/.git/modules/topic\n").expect("a writable folder");
        assert_eq!(env.find_store(None).expect("a home").how, How::Home);
    }

    #[test]
    fn without_a_home_the_error_says_what_to_do() {
        let env = Environment::default();
        let error = env.find_store(None).expect_err("there is nowhere to look");
        assert_eq!(error.message(), "there is no home folder");
        assert_eq!(error.hint_text(), Some("name the store with --store PATH or MEMGROVE_STORE"));
    }
}
