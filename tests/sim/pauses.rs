//! What clients ask for about paused timers.
//!
//! Owns the mix of pauses and resumes, and the resumes at the end. Keeps: nothing is drawn in a world without pauses, so that
//! its seeds stay what they are.

use std::rc::Rc;

use crate::asks::TENANTS;
use crate::client::{Ask, Spec};
use crate::sim::Sim;

/// Returns a pause or a resume now and then, of one of the timers that arms are about.
pub(crate) fn draw(sim: &Sim) -> Option<Ask> {
    if !sim.plan.has_pauses || sim.draw("pauses", |rng| rng.u32(0..3)) != 0 {
        return None;
    }
    let id = format!("t{}", sim.draw("pauses", |rng| rng.u32(0..sim.plan.ids)));
    let is_of_version = sim.draw("pauses", |rng| rng.u32(0..4)) == 0;
    let generation = is_of_version.then(|| sim.draw("pauses", |rng| rng.u64(1..40)));
    let is_pause = sim.draw("pauses", fastrand::Rng::bool);
    Some(if is_pause { Ask::Pause { id, generation } } else { Ask::Resume { id, generation } })
}

pub(crate) fn is_pause(ask: &Ask) -> bool {
    matches!(ask, Ask::Pause { .. } | Ask::Resume { .. })
}

/// Resumes every timer that is promised to be paused, so that it is accounted for.
pub(crate) fn resume_all(sim: &Rc<Sim>) {
    let oracle = sim.oracle.borrow();
    let homes = oracle.homes.values();
    let paused = homes.flat_map(|home| home.timers.iter().filter(|(_, timer)| timer.is_paused));
    let names: Vec<_> = paused.map(|(name, _)| name.clone()).collect();
    drop(oracle);
    for ((tenant, run), id) in names {
        let mut client = sim.client.borrow_mut();
        let number = client.next_number();
        let tenant = TENANTS.into_iter().find(|known| **known == *tenant).expect("clients have these tenants");
        let ask = Ask::Resume { id, generation: None };
        client.send(sim, Spec { number, tenant, run, correlation: Some(format!("c{number}")), ask });
    }
}
