//! A broker that grants nothing unless it was asked: the rights that `docs/operations.md` lists are enough, and each is needed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::commands::Partitioner;
use crate::harness::scene::{Scene, after};
use crate::harness::secured::{Resource, Right, Secured};
use crate::harness::serve::Serve;
use crate::harness::wait;

const BOUND: Duration = Duration::from_secs(40);

/// Returns the rights of a row of the table, for a deployment of this name.
fn documented(who: &str, deployment: &str) -> Vec<Right> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operations.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("## Rights").expect("the page has a section on rights");
    let (table, _) = table.split_once("\n## ").unwrap_or((table, ""));
    let mut rights = Vec::new();
    for row in table.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, on, operations] = cells[..] else { panic!("a row of three cells: {row}") };
        if name != format!("`{who}`") {
            continue;
        }
        for operation in operations.split(", ").map(|operation| operation.trim_matches('`')) {
            rights.extend(on.split(", ").map(|on| right(on, operation, deployment)));
        }
    }
    assert!(!rights.is_empty(), "the table has no row of {who}");
    rights
}

fn right(on: &str, operation: &str, deployment: &str) -> Right {
    let (resource, name, is_prefix) = match on {
        "arm topic" => (Resource::Topic, format!("{deployment}.arm"), false),
        "changelog" => (Resource::Topic, format!("{deployment}.changelog"), false),
        "dead-letter topic" => (Resource::Topic, format!("{deployment}.dead-letter"), false),
        "results topic" => (Resource::Topic, format!("{deployment}.results"), false),
        "fired topics" => (Resource::Topic, format!("{deployment}.fired."), true),
        "outbox topics" => (Resource::Topic, format!("{deployment}.outbox."), true),
        "group" => (Resource::Group, deployment.to_owned(), false),
        "transactional ids that begin with `GROUP-`" => (Resource::TransactionalId, format!("{deployment}-"), true),
        "cluster" => (Resource::Cluster, "kafka-cluster".to_owned(), false),
        other => panic!("{other} is nothing that rights are known for"),
    };
    Right { resource, name, is_prefix, operation: operation.to_owned() }
}

/// A deployment whose topics were made by a user with the rights for that.
struct Stage {
    scene: Scene,
    name: &'static str,
}

impl Stage {
    fn new(name: &'static str) -> Self {
        let secured = Secured::shared();
        let creator = secured.user_with(&documented("topics create", name));
        let scene = Scene::with(secured.broker(), name, |settings| secured.as_user(&creator, settings));
        Self { scene, name }
    }

    /// Starts the service as a user with these rights.
    fn launch(&self, rights: &[Right]) -> Serve {
        self.launch_as_user(rights).0
    }

    /// The same, and returns the user.
    fn launch_as_user(&self, rights: &[Right]) -> (Serve, String) {
        let user = Secured::shared().user_with(rights);
        let change = |settings: &mut Value| settings["kafka"]["properties"]["sasl.username"] = json!(user);
        (self.scene.deployment.launch_with(&user, change, &[]), user)
    }

    /// Starts the service with the documented rights but one.
    fn launch_without(&self, on: &str, operation: &str) -> Serve {
        let mut rights = documented("serve", self.name);
        let before = rights.len();
        rights.retain(|granted| *granted != right(on, operation, self.name));
        assert_eq!(rights.len() + 1, before, "{operation} on {on} is documented once");
        self.launch(&rights)
    }

    /// Runs the tool as a user with these rights.
    fn run(&self, rights: &[Right], arguments: &str) -> Output {
        let user = Secured::shared().user_with(rights);
        let set = format!("kafka.properties.sasl.username={user}");
        let arguments = arguments.split(' ').chain(["--timeout", "5s", "--set", &set]);
        let mut tool = Command::new(env!("CARGO_BIN_EXE_punctual"));
        tool.args(arguments).env("PUNCTUAL_CONFIG", self.scene.deployment.config()).output().unwrap()
    }
}

/// The whole journey, each part by a user who has what the table lists for it and nothing else.
#[test]
fn the_documented_rights_are_enough() {
    let mut stage = Stage::new("rights");
    let validated = stage.run(&documented("topics validate", stage.name), "topics validate");
    assert_eq!(validated.status.code(), Some(0), "{validated:?}");
    let mut process = stage.launch(&documented("serve", stage.name));
    process.wait_until_ready();
    stage.scene.arm_many("r", 40, Duration::from_secs(1), Duration::from_secs(3));
    stage.scene.disarm("r-39", "t");
    // A stray is forwarded, and what is no command becomes a dead letter.
    let crc32 = stage.scene.deployment.commands_partitioned_by(Partitioner::Crc32);
    let ours = std::mem::replace(&mut stage.scene.commands, crc32);
    (0..20).for_each(|number| stage.scene.arm(&format!("s-{number}"), "t", after(Duration::from_secs(2))));
    stage.scene.commands.send(None, Some(b"{"), "application/json");
    stage.scene.wait_until_answered();
    stage.scene.commands = ours;
    assert!(process.metric("punctual_forwarded_total") > 0.0, "no command was forwarded");
    let sender = [documented("arm", stage.name), documented("arm --wait", stage.name)].concat();
    let armed = stage.run(&sender, "arm order-42 t --kind payment --after P300D --wait=30s");
    assert_eq!(armed.status.code(), Some(0), "{armed:?}");
    let watched = stage.run(&documented("watch", stage.name), "watch --from-beginning --count 59 --for 60s");
    assert_eq!(watched.status.code(), Some(0), "{watched:?}");
    stage.scene.settle_all();
    process.stop();
}

/// What an arm needs, one by one: the tool says what is missing.
#[test]
fn each_right_of_the_tools_is_needed_and_named() {
    let stage = Stage::new("rights-tool");
    let cases = [
        ("arm", "arm topic", "WRITE", "arm order-42 t --kind email --after PT1H", "rights-tool.arm/"),
        ("arm", "changelog", "DESCRIBE", "arm order-42 t --kind email --after PT1H", "topic `rights-tool.changelog`"),
        ("watch", "fired topics", "READ", "watch --for 5s", "topic `rights-tool.fired.email`"),
        (
            "topics validate",
            "arm topic",
            "DESCRIBE_CONFIGS",
            "topics validate",
            "DESCRIBE_CONFIGS on topic `rights-tool.arm`",
        ),
    ];
    for (who, on, operation, command, expected) in cases {
        let mut rights = documented(who, stage.name);
        rights.retain(|granted| *granted != right(on, operation, stage.name));
        let output = stage.run(&rights, command);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code().is_some_and(|code| code == 1 || code == 3), "{command}: {words}");
        assert!(words.contains(expected), "{command} without {operation} on {on}: {words}");
    }
}

/// Rights without which the service does not start, and what it says then.
#[test]
fn the_service_stops_and_names_the_right_that_it_lacks() {
    let stage = Stage::new("rights-start");
    let transactional = "transactional ids that begin with `GROUP-`";
    let cases = [
        ("arm topic", "DESCRIBE_CONFIGS", "the right DESCRIBE_CONFIGS on topic `rights-start.arm`"),
        ("changelog", "DESCRIBE_CONFIGS", "the right DESCRIBE_CONFIGS on topic `rights-start.changelog`"),
        ("fired topics", "DESCRIBE_CONFIGS", "the right DESCRIBE_CONFIGS on topic `rights-start.fired.email`"),
        ("outbox topics", "WRITE", "topic `rights-start.outbox.payment`: topic is missing"),
        (transactional, "WRITE", "Write and Describe on the transactional ids that start with `rights-start-`"),
    ];
    for (on, operation, expected) in cases {
        let mut process = stage.launch_without(on, operation);
        let status = process.wait_for_end(BOUND);
        assert_eq!(status.code(), Some(1), "without {operation} on {on}");
        let log = process.log();
        let last = log.rsplit_once("error: ").map(|(_, last)| last.to_owned()).unwrap_or_default();
        assert!(last.contains(expected), "without {operation} on {on}: {last}");
        assert_eq!(log.matches(expected).count(), 1, "it is told once: {log}");
    }
}

/// Rights without which the service waits: it is not ready, says why, and goes on when they are granted.
#[test]
fn the_service_waits_for_a_right_and_goes_on_when_it_has_it() {
    let cases = [
        ("rights-group", "group", "READ", "Group authorization failed"),
        ("rights-arm", "arm topic", "READ", "Topic authorization failed"),
        ("rights-log", "changelog", "WRITE", "topic `rights-log.changelog`: no right to write to it"),
        ("rights-read", "changelog", "READ", "Topic authorization failed"),
    ];
    for (name, on, operation, expected) in cases {
        let mut stage = Stage::new(name);
        let mut rights = documented("serve", name);
        rights.retain(|granted| *granted != right(on, operation, name));
        // It is seen, as it would be with the other rights on it.
        rights.push(right(on, "DESCRIBE", name));
        let (mut process, user) = stage.launch_as_user(&rights);
        process.wait_for_words(BOUND, &[expected]);
        assert!(!process.is_ready(), "without {operation} on {on}");
        stage.scene.arm("r", "t", after(Duration::from_secs(1)));
        stage.scene.commands.flush();
        Secured::shared().grant(&user, &[right(on, operation, name)]);
        process.wait_until_ready();
        stage.scene.settle_all();
        process.stop();
    }
}

/// A command that must go to another partition of the arm topic waits until it may be written there.
#[test]
fn a_stray_waits_for_the_right_to_forward_it() {
    let mut stage = Stage::new("rights-stray");
    let name = stage.name;
    let mut rights = documented("serve", name);
    rights.retain(|granted| *granted != right("arm topic", "WRITE", name));
    let (mut process, user) = stage.launch_as_user(&rights);
    process.wait_until_ready();
    stage.scene.commands = stage.scene.deployment.commands_partitioned_by(Partitioner::Crc32);
    (0..10).for_each(|number| stage.scene.arm(&format!("s-{number}"), "t", after(Duration::from_secs(1))));
    stage.scene.commands.flush();
    process.wait_for_words(BOUND, &["rights-stray.arm", "no right to write to it"]);
    Secured::shared().grant(&user, &[right("arm topic", "WRITE", name)]);
    stage.scene.settle_all();
    process.stop();
}

/// L6: a topic that we may not write to holds up what is for it, and nothing else.
#[test]
fn l6_a_topic_without_the_right_to_write_holds_its_own_kind_only() {
    let mut stage = Stage::new("rights-kind");
    let name = stage.name;
    let mut rights = documented("serve", name);
    let email = Right { name: format!("{name}.fired.email"), is_prefix: false, ..right("fired topics", "WRITE", name) };
    let payment = Right { name: format!("{name}.fired.payment"), ..email.clone() };
    rights.retain(|granted| *granted != right("fired topics", "WRITE", name));
    rights.retain(|granted| *granted != right("results topic", "WRITE", name));
    rights.retain(|granted| *granted != right("dead-letter topic", "WRITE", name));
    for on in ["fired topics", "results topic", "dead-letter topic"] {
        rights.push(right(on, "DESCRIBE", name));
    }
    rights.push(payment);
    let (mut process, user) = stage.launch_as_user(&rights);
    process.wait_until_ready();
    let due = after(Duration::from_secs(1));
    stage.scene.arm("held", "t", due);
    stage.scene.account.armed("default/free/t", due);
    let arm = json!({"arm": {"timer_id": "t", "kind": "payment", "at": due.to_string()}});
    stage.scene.command("free", arm);
    stage.scene.commands.flush();
    stage.scene.wait_until_fired(1);
    process.wait_for_words(BOUND, &["rights-kind.fired.email", "no right to write to it"]);
    wait::until_true(BOUND, "the kind is held", || process.metric_with("punctual_kind_held", "email") > 0.5);
    assert_eq!(stage.scene.results.count(), 0, "answers are dropped while their topic takes none");
    Secured::shared().grant(&user, &[email]);
    stage.scene.settle_all();
    // A bad record waits for its letter: nothing is dropped in silence, and what is due fires meanwhile.
    let letters = stage.scene.deployment.reader(&["dead-letter"]);
    stage.scene.commands.send(Some("default/bad"), Some(b"{"), "application/json");
    stage.scene.commands.flush();
    process.wait_for_words(BOUND, &["rights-kind.dead-letter", "no right to write to it"]);
    assert_eq!(letters.count(), 0, "no letter was written");
    Secured::shared().grant(&user, &[right("dead-letter topic", "WRITE", name)]);
    letters.wait_for(1, BOUND, "the letter is written when it may be");
    stage.scene.arm("last", "t", after(Duration::from_secs(1)));
    stage.scene.commands.flush();
    stage.scene.settle_all();
    process.stop();
}
