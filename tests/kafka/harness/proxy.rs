//! A network that can fail: a TCP proxy between the service and a broker, which reads the frames of Kafka's protocol.
//!
//! Owns a listening port, two threads for each connection, and the faults that a scenario asks for. Never reads more of a
//! frame than its head, but for the answers that tell where the broker is: they are made to tell the proxy's port instead,
//! so that every later connection comes here as well. Keeps: what is passed on is passed in order; what a fault holds up
//! still arrives, also when the one who sent it has left, as it would on a real network.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use punctual::time::Clock;
use punctual::time::system::SystemClock;

use super::{free_port, wait};

/// Numbers of requests in Kafka's protocol.
pub(crate) const PRODUCE: i16 = 0;
pub(crate) const OFFSET_FETCH: i16 = 9;
pub(crate) const END_TXN: i16 = 26;

/// Answers that tell addresses: metadata, coordinators, the cluster.
const TELLING_ADDRESSES: &[i16] = &[3, 10, 60];
const HOST: &[u8] = b"127.0.0.1";
/// How often a second a slowed connection moves.
const SLICES_PER_SECOND: u32 = 20;
const FAULT_BOUND: Duration = Duration::from_mins(2);

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A request.
    ToBroker,
    /// An answer.
    FromBroker,
}

/// What happens to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It, and what is behind it on its connection, comes so much later.
    Delay(Duration),
    /// It waits until [`Proxy::release`].
    Hold,
    /// It never arrives.
    Swallow,
}

/// Frames that a fault is for.
#[derive(Clone, Copy, Debug)]
struct Rule {
    request: i16,
    way: Way,
    fault: Fault,
    times: usize,
}

#[derive(Debug, Default)]
struct State {
    rules: Vec<Rule>,
    /// How many frames met a fault.
    hits: usize,
    /// Nothing moves, in either way, and nobody is told.
    is_silent: bool,
    /// Bytes a second from the broker, of each connection.
    rate: Option<u32>,
    /// Rises with each release of held frames.
    releases: usize,
    is_closed: bool,
    connections: Vec<TcpStream>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A proxy in front of a broker.
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Starts a proxy in front of the broker that listens on this port.
    pub(crate) fn start(broker: u16) -> Self {
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming() {
                if theirs.state().is_closed {
                    return;
                }
                // A broker that is away refuses; the client sees its connection end.
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(("127.0.0.1", broker))) {
                    connect(&theirs, Ports { broker, proxy: port }, &client, &server);
                }
            }
        });
        Self { port, shared }
    }

    /// Returns host and port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Lets the next `times` frames of this kind meet a fault.
    pub(crate) fn fault(&self, request: i16, way: Way, fault: Fault, times: usize) {
        self.shared.change(|state| state.rules.push(Rule { request, way, fault, times }));
    }

    /// Waits until so many frames have met a fault.
    pub(crate) fn wait_for_hits(&self, hits: usize) {
        wait::until_true(FAULT_BOUND, &format!("{hits} frames meet a fault"), || self.shared.state().hits >= hits);
    }

    /// Returns how many frames have met a fault.
    pub(crate) fn hits(&self) -> usize {
        self.shared.state().hits
    }

    /// Lets held frames go on, and ends all faults.
    pub(crate) fn release(&self) {
        self.shared.change(|state| {
            state.rules.clear();
            state.releases += 1;
        });
    }

    /// Lets nothing through any more, without a word; new connections are accepted, and as silent.
    pub(crate) fn silence(&self) {
        self.shared.change(|state| state.is_silent = true);
    }

    /// Ends the silence: what was under way arrives now.
    pub(crate) fn heal(&self) {
        self.shared.change(|state| state.is_silent = false);
    }

    /// Lets each connection have so many bytes a second from the broker; `None` is as many as there are.
    pub(crate) fn throttle(&self, bytes_per_second: Option<u32>) {
        self.shared.change(|state| state.rate = bytes_per_second);
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        self.shared.change(|state| {
            for connection in state.connections.drain(..) {
                // An error says that it has ended already.
                drop(connection.shutdown(Shutdown::Both));
            }
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.change(|state| {
            *state = State { is_closed: true, connections: std::mem::take(&mut state.connections), ..State::default() };
        });
        self.cut();
        // Wakes the thread that accepts.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Returns the fault that a frame meets, if any, and the number of releases so far.
    fn fault_of(&self, request: i16, way: Way) -> Option<(Fault, usize)> {
        let mut state = self.state();
        let rule = state.rules.iter_mut().find(|rule| rule.times > 0 && (rule.request, rule.way) == (request, way))?;
        rule.times -= 1;
        let fault = rule.fault;
        state.hits += 1;
        Some((fault, state.releases))
    }

    fn wait_while(&self, mut holds: impl FnMut(&State) -> bool) {
        drop(self.changed.wait_while(self.state(), |state| !state.is_closed && holds(state)).unwrap());
    }

    fn wait(&self, duration: Duration) {
        let end = SystemClock.boot() + duration;
        while SystemClock.boot() < end && !self.state().is_closed {
            let left = end.saturating_sub(SystemClock.boot());
            drop(self.changed.wait_timeout(self.state(), left).unwrap());
        }
    }
}

#[derive(Clone, Copy)]
struct Ports {
    broker: u16,
    proxy: u16,
}

/// One way of one connection.
struct Pump {
    way: Way,
    from: TcpStream,
    to: TcpStream,
    shared: Arc<Shared>,
    ports: Ports,
    /// Which request an answer is for, by correlation id.
    asked: Arc<Mutex<BTreeMap<i32, i16>>>,
}

fn connect(shared: &Arc<Shared>, ports: Ports, client: &TcpStream, server: &TcpStream) {
    let clone = |stream: &TcpStream| stream.try_clone().unwrap();
    shared.change(|state| state.connections.extend([clone(client), clone(server)]));
    let asked = Arc::default();
    let ways = [(Way::ToBroker, client, server), (Way::FromBroker, server, client)];
    for (way, from, to) in ways {
        from.set_nodelay(true).unwrap();
        let (shared, asked) = (Arc::clone(shared), Arc::clone(&asked));
        let mut pump = Pump { way, from: clone(from), to: clone(to), shared, ports, asked };
        thread::spawn(move || {
            // The end of a connection is told to the other side, after what was still under way.
            drop(pump.run());
            drop(pump.to.shutdown(Shutdown::Write));
            drop(pump.from.shutdown(Shutdown::Read));
        });
    }
}

impl Pump {
    fn run(&mut self) -> io::Result<()> {
        loop {
            let mut frame = self.read_frame()?;
            let Some(request) = self.request_of(&frame) else {
                return Ok(());
            };
            if self.way == Way::FromBroker && TELLING_ADDRESSES.contains(&request) {
                redirect(&mut frame, self.ports);
            }
            self.shared.wait_while(|state| state.is_silent);
            match self.shared.fault_of(request, self.way) {
                Some((Fault::Swallow, _)) => continue,
                Some((Fault::Delay(delay), _)) => self.shared.wait(delay),
                Some((Fault::Hold, before)) => self.shared.wait_while(|state| state.releases == before),
                None => {}
            }
            self.write_frame(&frame)?;
        }
    }

    fn read_frame(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.from.read_exact(&mut head)?;
        let mut frame = head.to_vec();
        frame.resize(4 + usize::try_from(u32::from_be_bytes(head)).unwrap(), 0);
        self.from.read_exact(&mut frame[4..])?;
        Ok(frame)
    }

    fn request_of(&self, frame: &[u8]) -> Option<i16> {
        let number = |at: usize| Some(i32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?));
        let mut asked = self.asked.lock().unwrap();
        if self.way == Way::FromBroker {
            return asked.remove(&number(4)?);
        }
        let request = i16::from_be_bytes(frame.get(4..6)?.try_into().ok()?);
        asked.insert(number(8)?, request);
        Some(request)
    }

    fn write_frame(&mut self, frame: &[u8]) -> io::Result<()> {
        let mut rest = frame;
        while !rest.is_empty() {
            let rate = self.shared.state().rate.filter(|_| self.way == Way::FromBroker);
            let Some(rate) = rate else {
                return self.to.write_all(rest);
            };
            let slice = usize::try_from(rate / SLICES_PER_SECOND).unwrap().clamp(1, rest.len());
            self.to.write_all(&rest[..slice])?;
            rest = &rest[slice..];
            self.shared.wait(Duration::from_secs(1) / SLICES_PER_SECOND);
        }
        Ok(())
    }
}

/// Puts the proxy's port in the place of the broker's wherever it follows the host: both are numbers of four bytes.
fn redirect(frame: &mut [u8], ports: Ports) {
    let mut address = HOST.to_vec();
    address.extend_from_slice(&i32::from(ports.broker).to_be_bytes());
    let places: Vec<usize> = (0..frame.len()).filter(|at| frame[*at..].starts_with(&address)).collect();
    for place in places {
        let port = place + HOST.len();
        frame[port..port + 4].copy_from_slice(&i32::from(ports.proxy).to_be_bytes());
    }
}
