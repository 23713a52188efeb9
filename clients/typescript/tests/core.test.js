// Retries, errors and the following of streams, with a `fetch` that says what a test has prepared.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import * as baton from "../dist/index.js";
import { refusal } from "../dist/errors.js";
import { path, pauseAfter } from "../dist/http.js";

const LOST = "lost";
const json = (body, status = 200, headers = {}) => () => new Response(JSON.stringify(body), { status, headers });
const stream = (...parts) => () => {
  const body = new ReadableStream({
    async pull(controller) {
      const part = parts.shift();
      if (part === undefined) controller.close();
      else if (part === LOST) controller.error(new TypeError("terminated"));
      else controller.enqueue(new TextEncoder().encode(part));
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
};
const event = (sequence, type = "node.completed") => ({ eventId: `e${sequence}`, runId: "r", sequence, type, timestamp: "", payload: {} });
const frame = (sequence, type) => `id: ${sequence}\nevent: ${type ?? "x"}\ndata: ${JSON.stringify(event(sequence, type))}\n\n`;
const BUSY = json({ error: "overloaded", message: "later" }, 503, { "retry-after": "0" });

/** A client of a world where only what is prepared happens. */
function world(...outcomes) {
  const requests = [];
  const client = new baton.Client({
    url: "http://host.test/base/",
    token: "k",
    async fetch(url, init) {
      requests.push({ url: String(url), path: new URL(url).pathname, ...init });
      assert.ok(outcomes.length > 0, `nothing is prepared for ${url}`);
      const outcome = outcomes.shift();
      if (outcome === LOST) throw new TypeError("fetch failed");
      return outcome();
    },
  });
  return { client, requests };
}

async function all(items) {
  const got = [];
  for await (const item of items) got.push(item);
  return got;
}

test("a failure that may pass is tried again with the same key", async () => {
  const { client, requests } = world(LOST, BUSY, json({ runId: "r" }, 201));
  assert.deepEqual(await client.runs.start("x"), { runId: "r" });
  assert.equal(requests.length, 3);
  assert.equal(new Set(requests.map((request) => request.headers["idempotency-key"])).size, 1);
  assert.equal(requests[0].url, "http://host.test/base/v1/runs");
  assert.equal(requests[0].headers.authorization, "Bearer k");
});

test("what another attempt would not change is final", async () => {
  const kinds = { 400: "InvalidRequest", 401: "Unauthenticated", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "NotFound", 412: "Conflict", 422: "InvalidRequest", 500: "ApiError" };
  for (const [status, kind] of Object.entries(kinds)) {
    const { client } = world(json({ error: "some_code", message: "no", details: { hint: "do that" } }, Number(status)));
    await assert.rejects(client.runs.get("r"), { name: kind, status: Number(status), code: "some_code", hint: "do that", retriable: false });
  }
});

test("retries are bounded", async () => {
  const { client, requests } = world(...Array(7).fill(BUSY));
  await assert.rejects(client.runs.get("r"), baton.Unavailable);
  assert.equal(requests.length, 7);
  const impatient = world(LOST, LOST, LOST, LOST, LOST, LOST, LOST);
  await assert.rejects(impatient.client.runs.get("r", { timeoutMs: 250 }), baton.ConnectionFailed);
  assert.ok(impatient.requests.length < 4);
});

test("a host that wants to be left alone for long is not waited for", async () => {
  const { client, requests } = world(json({ error: "rate_limited", message: "later" }, 429, { "retry-after": "3600" }));
  await assert.rejects(client.runs.get("r", { timeoutMs: 1e8 }), { name: "RateLimited", retryAfterMs: 3_600_000, retriable: true });
  assert.equal(requests.length, 1);
});

test("pauses grow and are bounded", () => {
  const waits = Array.from({ length: 2000 }, (_, attempt) => pauseAfter(new baton.ConnectionFailed("x"), attempt));
  assert.ok(waits[0] <= 100 && waits[4] > waits[0] && Math.max(...waits) <= 5000);
});

test("pages of proxies and unknown bodies", () => {
  const none = new Headers();
  assert.ok(refusal(502, none, "<html>bad gateway</html>") instanceof baton.Unavailable);
  assert.ok(refusal(404, none, "<html>") instanceof baton.NotUnderstood);
  assert.ok(refusal(500, none, '["error"]') instanceof baton.NotUnderstood);
  assert.ok(refusal(500, none, "null") instanceof baton.NotUnderstood);
  const odd = refusal(409, new Headers({ "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" }), '{"error":"idempotency_in_flight","details":7}');
  assert.ok(odd instanceof baton.Conflict && odd.retriable && odd.retryAfterMs === undefined);
  const answered = refusal(409, none, '{"error":"interrupt_already_resolved","message":"","details":{"openInterruptId":"int:a:2"}}');
  assert.ok(answered instanceof baton.AlreadyAnswered && answered.openInterruptId === "int:a:2");
});

test("ids cannot leave their segment", async () => {
  assert.equal(path("v1", "runs", "a/../b?c#d", "events"), "/v1/runs/a%2F..%2Fb%3Fc%23d/events");
  assert.equal(path("v1", "runs", "run_1:pause"), "/v1/runs/run_1:pause");
  for (const name of ["", ".", ".."]) assert.throws(() => path("v1", "runs", name), TypeError);
});

test("a stream that breaks goes on behind the last event", async () => {
  const { client, requests } = world(
    stream(frame(0) + frame(1).slice(0, 10), LOST),
    stream(frame(1) + frame(2)),
    json({ status: "running", atSeq: 4 }),
    LOST,
    BUSY,
    // What was seen already comes again: it is not given twice.
    stream(frame(1) + frame(2) + frame(3), frame(4, "run.completed")),
  );
  const events = await all(client.runs.events("r", { mode: "debug" }));
  assert.deepEqual(events.map((one) => one.sequence), [0, 1, 2, 3, 4]);
  const asked = requests.filter((request) => request.path.endsWith("/events")).map((request) => request.headers["last-event-id"]);
  assert.deepEqual(asked, [undefined, "0", "2", "2", "2"]);
});

test("batches, annotations and comments", async () => {
  const batch = `id: 5\nevent: batch\ndata: ${JSON.stringify([event(3), event(4), event(5)])}\n\n`;
  const beside = 'event: run.annotated\ndata: {"note":"odd"}\n\n:keepalive\n\n';
  const { client } = world(stream(beside + batch + beside, frame(6, "run.failed")));
  const events = await all(client.runs.events("r", { after: 3 }));
  assert.deepEqual(events.map((one) => one.sequence), [4, 5, 6]);
});

test("a stream without progress is given up", async () => {
  const { client, requests } = world(LOST, LOST, LOST);
  await assert.rejects(all(client.withOptions({ streamRetries: 2 }).runs.events("r")), baton.ConnectionFailed);
  assert.equal(requests.length, 3);
});

test("a host that talks nonsense is not believed", async () => {
  for (const data of ["id: 1\ndata: {}\n\n", "id: 1\ndata: nonsense\n\n", 'id: 1\ndata: [{"sequence":"1"}]\n\n', "id: 1\ndata: null\n\n"]) {
    await assert.rejects(all(world(stream(data)).client.runs.events("r")), baton.NotUnderstood, data);
  }
  await assert.rejects(all(world(json("hello")).client.runs.events("r")), baton.NotUnderstood);
  await assert.rejects(world(() => new Response("<html>")).client.runs.get("r"), baton.NotUnderstood);
  await assert.rejects(world(() => new Response(null, { status: 302, headers: { location: "https://elsewhere.test" } })).client.runs.get("r"), baton.NotUnderstood);
});

test("pages go on until there is no cursor", async () => {
  const { client, requests } = world(json({ runs: [1, 2], nextCursor: "a" }), json({ runs: [], nextCursor: "b" }), json({ runs: [3], nextCursor: null }));
  assert.deepEqual(await all(client.runs.list({ tag: "x", pageSize: 2 })), [1, 2, 3]);
  assert.deepEqual(requests.map((request) => new URL(request.url).search), ["?tag=x&limit=2", "?tag=x&limit=2&cursor=a", "?tag=x&limit=2&cursor=b"]);
  await assert.rejects(all(world(json({ runs: [], nextCursor: "a" }), json({ runs: [], nextCursor: "a" })).client.runs.list()), baton.NotUnderstood);
});

test("an abort reaches calls, pauses and streams, as the caller gave it", async () => {
  const reason = new Error("enough");
  const stopped = AbortSignal.abort(reason);
  await assert.rejects(world().client.runs.get("r", { signal: stopped }), reason);
  await assert.rejects(all(world().client.runs.events("r", { signal: stopped })), reason);
  const pausing = new AbortController();
  const waiting = world(json({ error: "x", message: "" }, 503, { "retry-after": "20" })).client.runs.get("r", { signal: pausing.signal });
  setImmediate(() => pausing.abort(reason));
  await assert.rejects(waiting, reason);
});

test("webhooks are checked", async () => {
  const now = 1_800_000_000;
  const body = '{"type":"run.completed"}';
  const signed = (secret, timestamp, text) => ({
    "X-openwop-Timestamp": timestamp,
    "X-openwop-Signature": `sha256=${createHmac("sha256", secret).update(`${timestamp}.${text}`).digest("hex")}`,
  });
  const genuine = signed("s", String(now), body);
  assert.equal(await baton.verifyWebhook("s", genuine, body, { nowSeconds: now + 299 }), true);
  assert.equal(await baton.verifyWebhook("s", new Headers(genuine), new TextEncoder().encode(body), { nowSeconds: now }), true);
  for (const [headers, text, at] of [
    [signed("other", String(now), body), body, now],
    [genuine, `${body} `, now],
    [genuine, body, now + 301],
    [genuine, body, now - 301],
    [signed("s", "-1", body), body, 0],
    [{ ...genuine, "X-openwop-Signature": "sha256=00" }, body, now],
    [{ ...genuine, "X-openwop-Signature": undefined }, body, now],
    [{}, body, now],
  ]) {
    assert.equal(await baton.verifyWebhook("s", headers, text, { nowSeconds: at }), false);
  }
});
