// Parts of the console that need no browser: `node --test console/tests`.
import assert from "node:assert/strict";
import { test } from "node:test";

import { diffJson, diffText } from "../lib/diff.js";
import { parseQuery, problems, span, writeQuery } from "../lib/query.js";
import { batch, computed, effect, scope, signal } from "../lib/signal.js";
import { FrameReader } from "../lib/sse.js";
import { listCommand, VIEWS } from "../screens/runs/filter.js";

test("frames survive any cut of the stream", () => {
  const text = 'id: 7\nevent: batch\ndata: [{"a":"ü"}]\n\n:keepalive\n\nid: 8\r\nevent: x\r\ndata: 1\r\ndata: 2\r\n\r\n';
  const whole = new FrameReader().push(text);
  assert.deepEqual(whole, [{ id: "7", event: "batch", data: '[{"a":"ü"}]' }, { id: "8", event: "x", data: "1\n2" }]);
  for (let cut = 1; cut < text.length; cut += 1) {
    const reader = new FrameReader();
    assert.deepEqual([...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut))], whole, `cut at ${cut}`);
  }
});

test("a filter reads and writes itself", () => {
  const query = parseQuery('status:waiting,failed cost>=0.5 tag:"two words" some "more of it"');
  assert.deepEqual(query.words, ["some", "more of it"]);
  assert.deepEqual(query.terms[1], { name: "cost", sign: ">=", value: "0.5" });
  assert.deepEqual(parseQuery(writeQuery(query)), query);
  assert.equal(problems(query, [{ name: "status", hint: "", values: ["waiting", "failed"] }]).length, 2);
  assert.deepEqual([span("90s"), span("24h"), span("x")], [90_000, 86_400_000, null]);
});

test("a list of runs is copied as the command that lists the same, and says what it cannot", () => {
  const words = (/** @type {string} */ text) => listCommand(text).baton.slice(2, -2).join(" ");
  const views = Object.fromEntries(VIEWS.map(({ id, text }) => [id, words(text)]));
  assert.deepEqual([views.all, views.failed, views.stuck, views["over-budget"], views.diverged], ["", "--status failed", "--status running --status pending --quiet-for 15m", "--over-budget", "--diverged"]);
  assert.equal(words("tag:x since:2026-01-02 until:2026-01-03 workflow:w idle>90s run_1"), "--workflow w --tag x --since 2026-01-02T00:00:00.000Z --until 2026-01-03T00:00:00.000Z --quiet-for 90s --prefix run_1");
  assert.deepEqual(["", "is:top-level cost>1"].map((text) => listCommand(text).batonNote), [undefined, "without is:top-level, cost"]);
});

test("effects follow, end with their scope and are told once", () => {
  const [a, b] = [signal(1), signal(2)];
  const seen = [];
  const here = scope();
  here.run(() => {
    const sum = computed(() => a.value + b.value);
    effect(() => seen.push(sum.value));
  });
  batch(() => {
    a.value = 10;
    b.value = 20;
  });
  assert.deepEqual(seen, [3, 30]);
  here.end();
  a.value = 0;
  assert.deepEqual(seen, [3, 30]);
});

/** Both texts can be read off a diff again. */
function check(before, after) {
  const lines = diffText(before, after);
  const side = (kind) => lines.filter((line) => line.kind !== kind).map((line) => line.text).join("\n");
  assert.equal(side("added"), before);
  assert.equal(side("removed"), after);
  return lines.filter((line) => line.kind !== "same").length;
}

test("a diff of texts is right and short", () => {
  assert.equal(check("a\nb\nc", "a\nx\nc"), 2);
  assert.equal(check("", "a\nb"), 2);
  assert.equal(check("a\nb\nc\na\nb\nb\na", "c\nb\na\nb\na\nc"), 5);
  let seed = 1;
  const next = () => (seed = (seed * 48271) % 2147483647);
  for (let round = 0; round < 200; round += 1) {
    const text = () => Array.from({ length: 1 + (next() % 12) }, () => "abc"[next() % 3]).join("\n");
    check(text(), text());
  }
});

test("a diff of values names every place", () => {
  const { changes } = diffJson({ a: 1, b: { c: [1, 2] }, "x/y": 0 }, { a: 1, b: { c: [1, 3, 4] } });
  assert.deepEqual(changes.map(({ path, kind }) => [path, kind]), [["/b/c/1", "changed"], ["/b/c/2", "added"], ["/x~1y", "removed"]]);
});
