//! A machine of its own for every test: an empty home, a project folder, and nothing inherited.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The built program.
pub(crate) const MEMGROVE: &str = env!("CARGO_BIN_EXE_memgrove");

/// A temporary home with a project in it.
pub(crate) struct Sandbox {
    folder: tempfile::TempDir,
}

/// What a run of the program gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Sandbox {
    /// A home and a project without a store.
    pub(crate) fn empty() -> Self {
        let folder = tempfile::Builder::new().prefix("memgrove-it-").tempdir().expect("a temporary folder");
        std::fs::create_dir_all(folder.path().join("home/project")).expect("a folder");
        Sandbox { folder }
    }

    /// The same in memory, where there is such a place: for tests that write much, and not about disks.
    pub(crate) fn in_memory() -> Self {
        let shared = Path::new("/dev/shm");
        if !shared.is_dir() {
            return Sandbox::new();
        }
        let folder = tempfile::Builder::new().prefix("memgrove-it-").tempdir_in(shared).expect("a folder");
        std::fs::create_dir_all(folder.path().join("home/project")).expect("a folder");
        let sandbox = Sandbox { folder };
        sandbox.run(&["init"]).ok();
        sandbox
    }

    /// A home and a project with a store in it.
    pub(crate) fn new() -> Self {
        let sandbox = Sandbox::empty();
        sandbox.run(&["init"]).ok();
        sandbox
    }

    /// The folder of everything.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The home folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.path().join("home")
    }

    /// The working folder.
    pub(crate) fn project(&self) -> PathBuf {
        self.path().join("home/project")
    }

    /// The project's store.
    pub(crate) fn store(&self) -> PathBuf {
        self.project().join(".memgrove")
    }

    /// A command that knows of nothing outside.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let bin = Path::new(MEMGROVE).parent().expect("a program is in a folder").display();
        command
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
            .env("TMPDIR", self.path())
            .env("TZ", "UTC0")
            .current_dir(self.project());
        command
    }

    /// The program with arguments.
    pub(crate) fn memgrove(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(MEMGROVE);
        command.args(arguments);
        command
    }

    /// Runs the program without input.
    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.feed(arguments, "")
    }

    /// Runs the program with input.
    pub(crate) fn feed(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        Ran::of(spawn(self.memgrove(arguments)), input)
    }
}

/// Starts a command with everything piped.
pub(crate) fn spawn(mut command: Command) -> Child {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started")
}

impl Ran {
    /// What a child gives that is fed with this.
    pub(crate) fn of(mut child: Child, input: impl AsRef<[u8]>) -> Self {
        let mut stdin = child.stdin.take().expect("it is piped");
        let input = input.as_ref().to_vec();
        // From a thread of its own, so that neither side waits for the other.
        let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("it was started");
        feeder.join().expect("it only writes");
        Ran {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The output of a run that went well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// The output of a run that went well, as JSON.
    #[track_caller]
    pub(crate) fn json(self) -> serde_json::Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// The errors of a run that failed with this code; nothing is on standard output.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        self.err
    }
}
