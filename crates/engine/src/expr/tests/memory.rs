//! How much memory an expression may take. It is measured in a process of its own, where nothing else takes any.
#![cfg(target_os = "linux")]
// The test asks the kernel; what it measures does not.
#![allow(clippy::disallowed_methods)]

use std::process::Command;

use super::*;

/// What an evaluation may take beside the run's own data.
const MOST_KIB: u64 = 16 * 1024;
/// What the allocator and the test take themselves.
const SLACK_KIB: u64 = 2 * 1024;
/// Set for the process that measures.
const ALONE: &str = "BATON_MEASURES_ALONE";

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[test]
fn each_of_the_hostile_ones_stays_within_its_memory() {
    if std::env::var_os(ALONE).is_none() {
        let name = std::thread::current().name().unwrap().to_owned();
        let alone = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--test-threads=1", "--nocapture"])
            .env(ALONE, "1")
            // Freed memory goes back at once, so that one expression does not use what another one left.
            .env("MALLOC_TRIM_THRESHOLD_", "0")
            .env("MALLOC_ARENA_MAX", "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&alone.stdout).into_owned() + &String::from_utf8_lossy(&alone.stderr);
        assert!(alone.status.success(), "{told}");
        return;
    }
    let data = hostile::data();
    for (name, source) in hostile::corpus() {
        let Ok(expression) = compile(&source) else { continue };
        let names = Names::new(data.clone());
        // The kernel forgets the peak so far; where it cannot, there is nothing to measure.
        if std::fs::write("/proc/self/clear_refs", "5").is_err() {
            return;
        }
        let before = status("VmRSS").unwrap();
        let _ = expression.evaluate(&names);
        let taken = status("VmHWM").unwrap().saturating_sub(before);
        assert!(taken <= MOST_KIB + SLACK_KIB, "{name} took {taken} KiB");
    }
}
