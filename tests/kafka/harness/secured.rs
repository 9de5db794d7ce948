//! A broker that lets nobody in without a name, and lets nobody do what was not granted.
//!
//! Owns its certificates, its users and the rights that scenarios grant. Keeps: the ledger of a scenario uses a listener of
//! its own without names, whose user may do everything, so that it sees what the service may not.
//!
//! ```text
//!   TLS    SASL_SSL, SCRAM-SHA-256    a certificate of our own authority for `localhost`; the user may do everything
//!   NAMED  SASL_PLAINTEXT, PLAIN      any user of [`USERS`], with the rights that it is granted
//! ```

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};

use super::broker::Broker;
use super::{directory, free_port, wait};

/// The user of TLS, who may do everything.
pub(crate) const OPERATOR: &str = "operator";
/// Its password, and that of everybody: it has what a shell, YAML and JAAS could misread.
pub(crate) const PASSWORD: &str = "p'a: s#$0";
/// How many users there are whose rights a scenario chooses: `user-0` and so on.
const USERS: usize = 60;

const GRANT_BOUND: Duration = Duration::from_secs(20);

/// A kind of thing that rights are about, by its number in Kafka's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Topic = 2,
    Group = 3,
    Cluster = 4,
    TransactionalId = 5,
}

/// A right: on what, which operation, by its name in Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Right {
    pub(crate) resource: Resource,
    pub(crate) name: String,
    /// Whether the name is the beginning of names.
    pub(crate) is_prefix: bool,
    pub(crate) operation: String,
}

/// Operations by their names, and their numbers in Kafka's protocol.
const OPERATIONS: [(&str, u8); 6] =
    [("READ", 3), ("WRITE", 4), ("CREATE", 5), ("DESCRIBE", 8), ("DESCRIBE_CONFIGS", 10), ("IDEMPOTENT_WRITE", 12)];

/// The broker with both listeners.
pub(crate) struct Secured {
    broker: Broker,
    directory: PathBuf,
    tls_port: u16,
    named_port: u16,
    users_taken: Mutex<usize>,
}

impl Secured {
    /// Returns the broker that all scenarios about rights share.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<Secured> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    fn start() -> Self {
        let directory = directory("secured");
        make_certificates(&directory);
        let mut broker = Broker::start("secured");
        let (tls_port, named_port) = (free_port(), free_port());
        let settings = fs::read_to_string(directory.join("server.properties")).unwrap();
        let setting = |key: &str| settings.lines().find_map(|line| line.strip_prefix(&format!("{key}="))).unwrap();
        let users: Vec<String> = (0..USERS).map(|number| format!("user_user-{number}=\"{PASSWORD}\"")).collect();
        let (listeners, advertised) = (setting("listeners"), setting("advertised.listeners"));
        broker.reconfigure(&format!(
            "listeners={listeners},TLS://127.0.0.1:{tls_port},NAMED://127.0.0.1:{named_port}\n\
             advertised.listeners={advertised},TLS://localhost:{tls_port},NAMED://127.0.0.1:{named_port}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SASL_SSL,NAMED:SASL_PLAINTEXT\n\
             inter.broker.listener.name=PLAINTEXT\n\
             listener.name.tls.sasl.enabled.mechanisms=SCRAM-SHA-256\n\
             listener.name.tls.scram-sha-256.sasl.jaas.config=\
             org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
             listener.name.tls.ssl.keystore.type=PEM\n\
             listener.name.tls.ssl.keystore.location={}/broker.pem\n\
             listener.name.named.sasl.enabled.mechanisms=PLAIN\n\
             listener.name.named.plain.sasl.jaas.config=\
             org.apache.kafka.common.security.plain.PlainLoginModule required {};\n\
             authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
             super.users=User:ANONYMOUS;User:{OPERATOR}\n",
            directory.display(),
            users.join(" ")
        ));
        make_operator(&broker.address());
        Self { broker, directory, tls_port, named_port, users_taken: Mutex::new(0) }
    }

    /// Returns the broker, as the ledger of a scenario sees it.
    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Returns the file with the authority that signed the broker's certificate.
    pub(crate) fn authority(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// Returns a file with an authority that did not.
    pub(crate) fn other_authority(&self) -> PathBuf {
        self.directory.join("other.pem")
    }

    /// Has the service and the tools connect over TLS, as the operator.
    pub(crate) fn over_tls(&self, settings: &mut Value) {
        settings["kafka"]["bootstrap_servers"] = json!(format!("localhost:{}", self.tls_port));
        settings["kafka"]["properties"] = json!({
            "broker.address.family": "v4",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self.authority(),
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": OPERATOR,
            "sasl.password": PASSWORD,
        });
    }

    /// Has the service and the tools connect as a user.
    pub(crate) fn as_user(&self, user: &str, settings: &mut Value) {
        settings["kafka"]["bootstrap_servers"] = json!(format!("127.0.0.1:{}", self.named_port));
        settings["kafka"]["properties"] = json!({
            "broker.address.family": "v4",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": PASSWORD,
        });
    }

    /// Returns a user who has these rights and no others.
    pub(crate) fn user_with(&self, rights: &[Right]) -> String {
        let mut taken = self.users_taken.lock().unwrap();
        let user = format!("user-{taken}");
        *taken += 1;
        assert!(*taken <= USERS, "no user is left: raise their number");
        self.grant(&user, rights);
        user
    }

    /// Grants rights to a user: `CreateAcls`, version 1, by hand, for our client library cannot.
    pub(crate) fn grant(&self, user: &str, rights: &[Right]) {
        let mut body = request_head(30, 1);
        body.extend(u32::try_from(rights.len()).unwrap().to_be_bytes());
        for right in rights {
            body.push(right.resource as u8);
            text(&mut body, &right.name);
            body.push(if right.is_prefix { 4 } else { 3 });
            text(&mut body, &format!("User:{user}"));
            text(&mut body, "*");
            let (_, operation) = OPERATIONS.iter().find(|(name, _)| *name == right.operation).unwrap();
            // The last byte: it is allowed.
            body.extend([*operation, 3]);
        }
        let before = self.rights_of(user);
        let answer = ask(&self.broker.address(), &body);
        // Correlation id, throttle time, number of results, then for each its code and a text.
        let (results, mut rest) = (u32::from_be_bytes(answer[8..12].try_into().unwrap()), &answer[12..]);
        assert_eq!(usize::try_from(results).unwrap(), rights.len(), "each right has a result");
        for right in rights {
            assert_eq!(rest[..2], [0, 0], "{right:?} was not granted");
            let length = i16::from_be_bytes([rest[2], rest[3]]).max(0);
            rest = &rest[4 + usize::try_from(length).unwrap()..];
        }
        // The controller has them; the broker learns of them a moment later.
        let expected = before + rights.len();
        wait::until_true(GRANT_BOUND, "the broker knows the rights", || self.rights_of(user) >= expected);
    }

    /// Returns how many rights the broker knows of a user: `DescribeAcls`, version 1.
    fn rights_of(&self, user: &str) -> usize {
        let mut body = request_head(29, 1);
        // Any resource, any name (null), any pattern.
        body.extend([1, 0xFF, 0xFF, 1]);
        let mut principal = Vec::new();
        text(&mut principal, &format!("User:{user}"));
        body.extend(&principal);
        // Any host (null), any operation, allowed or not.
        body.extend([0xFF, 0xFF, 1, 1]);
        let answer = ask(&self.broker.address(), &body);
        answer.windows(principal.len()).filter(|window| *window == principal).count()
    }
}

fn request_head(api: u16, version: u16) -> Vec<u8> {
    let mut head = [api.to_be_bytes(), version.to_be_bytes()].concat();
    head.extend([0, 0, 0, 1]);
    text(&mut head, "tests");
    head
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    bytes.extend(text.as_bytes());
}

fn ask(address: &str, request: &[u8]) -> Vec<u8> {
    let mut connection = TcpStream::connect(address).unwrap();
    let framed = [&u32::try_from(request.len()).unwrap().to_be_bytes(), request].concat();
    connection.write_all(&framed).unwrap();
    let mut length = [0; 4];
    connection.read_exact(&mut length).unwrap();
    let mut answer = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    connection.read_exact(&mut answer).unwrap();
    answer
}

/// Makes an authority, a certificate of it for the broker, and an authority that signed nothing.
fn make_certificates(directory: &Path) {
    let openssl = |arguments: &str| {
        let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().unwrap();
        assert!(output.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    };
    for name in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -keyout {name}.key -out {name}.pem"
        ));
    }
    openssl("req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout broker.key -out broker.csr");
    fs::write(directory.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1").unwrap();
    openssl("x509 -req -in broker.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out broker.crt");
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    fs::write(directory.join("broker.pem"), read("broker.key") + &read("broker.crt")).unwrap();
}

/// Stores the operator's password with the broker, by Kafka's own tool.
fn make_operator(address: &str) {
    let libs = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/kafka-libs")).output().unwrap();
    let jars = format!("{}/*", String::from_utf8(libs.stdout).unwrap().trim());
    let scram = format!("SCRAM-SHA-256=[password={PASSWORD}]");
    let output = Command::new("java")
        .args(["-XX:TieredStopAtLevel=1", "-cp", &jars, "org.apache.kafka.tools.ConfigCommand"])
        .args(["--bootstrap-server", address, "--alter", "--entity-type", "users", "--entity-name", OPERATOR])
        .args(["--add-config", &scram])
        .output()
        .unwrap();
    assert!(output.status.success(), "the operator has a password: {output:?}");
}
