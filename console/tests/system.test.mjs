// The pure parts of the system page.
import assert from "node:assert/strict";
import { test } from "node:test";

import { told } from "../lib/connections.js";

const link = (state, failures = 0) => ({ kind: "mcp", name: "files", state, failures, since: "2026-01-01T00:00:00Z" });

test("a link says in a word how it is doing, and colour is never the only sign", () => {
  assert.deepEqual(told(link("connected")), { word: "connected", tone: "yes" });
  assert.deepEqual(told(link("connecting")), { word: "connecting", tone: "" });
  assert.deepEqual(told(link("connecting", 3)), { word: "trying again", tone: "no" });
  assert.deepEqual(told(link("failed", 1)), { word: "failed", tone: "no" });
  assert.deepEqual(told(link("idle")), { word: "not needed yet", tone: "" });
});
