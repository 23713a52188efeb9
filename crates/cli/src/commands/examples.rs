//! Examples that `--help` shows for the commands people use most.

pub(super) const DEV: &str = "\
Examples:
  baton dev
  baton dev --config baton.toml
  baton dev --workflows flows --listen 127.0.0.1:0";

pub(super) const SERVE: &str = "\
Examples:
  BATON_API_KEYS=secret-key:acme baton serve --data /var/lib/baton
  baton serve --config /etc/baton/baton.toml
  BATON_DATABASE_URL=postgres://baton@db/baton baton serve --listen 0.0.0.0:7717";

pub(super) const RUNNER: &str = "\
Examples:
  baton runner -- python worker.py
  baton runner --concurrency 16 -- node worker.mjs
  baton runner --url https://baton.example.com --token-file token -- ./tools";

pub(super) const NEW: &str = "\
Examples:
  baton new helpdesk
  baton new helpdesk --worker python
  baton new services/helpdesk --worker typescript";

pub(super) const TEST: &str = "\
Examples:
  baton test
  baton test tests/triage.test.yaml --filter urgent
  baton test --junit report.xml --jobs 4
  baton test --json | jq '.cases[] | select(.passed | not)'";

pub(super) const WORKFLOW_VALIDATE: &str = "\
Examples:
  baton workflow validate flows/report.json
  baton workflow validate flows/a.json flows/b.json --json
  generate-flow | baton workflow validate -";

pub(super) const RUN_START: &str = "\
Examples:
  baton run start demo-pipeline --wait
  baton run start report -i '{\"topic\": \"tides\"}' --tag nightly
  baton run start report -f inputs.json --follow
  baton run start report --idempotency-key order-17";

pub(super) const RUN_LIST: &str = "\
Examples:
  baton run list --status failed --limit 20
  baton run list --workflow report --since 2026-01-01T00:00:00Z
  baton run list --waiting
  baton run list --json | jq -r '.runs[].runId'";

pub(super) const RUN_EVENTS: &str = "\
Examples:
  baton run events run_01a1
  baton run events run_01a1 --follow
  baton run events run_01a1 --after 40 --json";

pub(super) const RUN_FORK: &str = "\
Examples:
  baton run fork run_01a1 --at 12
  baton run fork run_01a1 --at-node draft --set 'topic=\"moons\"' --wait
  baton run fork run_01a1 --replay --wait";

pub(super) const INTERRUPT_RESOLVE: &str = "\
Examples:
  baton interrupt resolve run_01a1 --accept
  baton interrupt resolve run_01a1 review --reject --feedback 'too long'
  baton interrupt resolve run_01a1 --answer city=Rome --answer days=3
  baton interrupt resolve run_01a1 review --edit '{\"title\": \"Tides\"}'";

pub(super) const AGENT_RUN: &str = "\
Examples:
  baton agent run vendor.baton.team.researcher --task 'Why are there tides?' --wait
  baton agent run my.pack.writer -i '{\"task\": \"A poem\"}' --model local/qwen3
  baton agent run my.pack.writer -f task.json --follow";

pub(super) const PACK_VERIFY: &str = "\
Examples:
  baton pack verify packs/my-pack
  baton pack verify my-pack.tgz --require-signed --trusted-key me=file:me.pub
  baton pack verify my-pack.tgz --ignore-requirement host.agentRuntime";
