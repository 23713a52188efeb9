//! What the server commits by itself: pgbench, one row inserted a transaction.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use baton_testkit::postgres::Cluster;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS beats (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body TEXT)";
const INSERT: &str = "INSERT INTO beats (body) VALUES (repeat('x', 300));\n";

/// Commits per second with this many clients.
pub(super) fn commits(cluster: &Cluster, database: &str, clients: usize, time: Duration) -> Result<f64> {
    let made = cluster.program("psql").args(["-X", "-q", "-c", TABLE, database]).output().context("cannot run psql")?;
    ensure!(made.status.success(), "psql: {}", String::from_utf8_lossy(&made.stderr));
    let mut script = tempfile::NamedTempFile::new()?;
    script.write_all(INSERT.as_bytes())?;
    // Whoever runs the server, who may not be us, runs this.
    script.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    let mut bench = cluster.program("pgbench");
    bench.args(["-n", "-M", "prepared", "-j", "2", "-f"]).arg(script.path());
    bench.args(["-c", &clients.to_string(), "-T", &time.as_secs().max(1).to_string(), database]);
    let output = bench.output().context("cannot run pgbench")?;
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
    parse(&told).with_context(|| format!("pgbench said no rate: {told}"))
}

fn parse(told: &str) -> Option<f64> {
    told.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_found() {
        let told = "latency average = 0.7 ms\ntps = 1234.567890 (without initial connection time)\n";
        assert_eq!(parse(told), Some(1234.56789));
        assert_eq!(parse("nothing"), None);
    }
}
