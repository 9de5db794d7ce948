//! Child processes that end with the tests, whatever ends the tests.
//!
//! Owns the thread that starts them: Linux ends a child at the death of the *thread* that started it (`setpriv
//! --pdeathsig`), so they are started by one that lives as long as the test binary, and end even when that is killed.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::wait;

type Request = (Command, Sender<io::Result<Child>>);

/// A running child. Dropping it kills it.
pub(crate) struct Process {
    name: String,
    child: Child,
}

/// Returns a command for a child that ends with the tests.
pub(crate) fn command(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program.as_ref());
    command
}

impl Process {
    /// Starts the child, without input, with its output appended to `log`.
    pub(crate) fn start(name: &str, mut command: Command, log: &Path) -> Self {
        let output = File::options().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let (reply, started) = channel();
        spawner().lock().unwrap().send((command, reply)).expect("the spawner lives as long as the tests");
        let child = started.recv().unwrap().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Self { name: name.to_owned(), child }
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Returns how the child ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the end of the child.
    pub(crate) fn wait_for_end(&mut self, bound: Duration) -> ExitStatus {
        let what = format!("{} ends", self.name);
        wait::until(bound, &what, || self.ended())
    }

    /// Kills the child with SIGKILL, also when it is stopped.
    pub(crate) fn kill(&mut self) {
        // An error says that it has ended already.
        drop(self.child.kill());
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawner() -> &'static Mutex<Sender<Request>> {
    static SPAWNER: OnceLock<Mutex<Sender<Request>>> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (sender, requests) = channel::<Request>();
        thread::spawn(move || {
            for (mut command, reply) in requests {
                drop(reply.send(command.spawn()));
            }
        });
        Mutex::new(sender)
    })
}
