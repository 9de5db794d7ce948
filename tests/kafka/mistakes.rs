//! Mistakes of operators: they end with a clear word, and nothing fires twice meanwhile.

use std::time::Duration;

use crate::harness::broker::Broker;
use crate::harness::scene::Scene;

const END_BOUND: Duration = Duration::from_secs(40);

// R20: a second process on the state directory of another.
#[test]
fn a_second_process_on_one_state_directory_ends_and_says_why() {
    let mut scene = Scene::new(Broker::shared(), "one-directory");
    let mut first = scene.serve("a");
    scene.arm_many("r", 100, Duration::from_secs(1), Duration::from_secs(8));
    let mut second = scene.deployment.launch_as("b", "b", "a");
    let status = second.wait_for_end(END_BOUND);
    assert!(!status.success(), "the second process ended as if all were well");
    let words = second.log_tail();
    assert!(words.contains("locked by another process"), "no clear word about the directory:\n{words}");
    scene.settle_all();
    assert!(first.ended().is_none(), "the first process goes on");
}

// R20: two processes with one instance id. The group lets the later one in; the earlier one must end.
#[test]
fn one_of_two_processes_with_one_instance_id_ends_and_says_why() {
    let mut scene = Scene::new(Broker::shared(), "one-instance");
    let mut first = scene.serve("a");
    scene.arm_many("r", 100, Duration::from_secs(1), Duration::from_secs(10));
    let second = scene.deployment.launch_as("b", "a", "b");
    let status = first.wait_for_end(END_BOUND);
    assert!(!status.success(), "the first process ended as if all were well");
    let words = first.log_tail();
    assert!(words.contains("instance"), "no clear word about the instance id:\n{words}");
    let last = words.lines().rfind(|line| line.starts_with("error: ")).unwrap_or_default();
    assert_eq!(last.matches("group.instance.id").count(), 1, "the cause is told once: {last}");
    scene.settle_all();
    drop(second);
}
