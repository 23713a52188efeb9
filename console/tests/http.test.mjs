// Requests against a host that is not quite there: what is asked again, what counts as no answer, and what does not.
import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.addEventListener ??= () => {};
globalThis.sessionStorage ??= { getItem: () => null, setItem() {}, removeItem() {} };
const { json } = await import("../lib/http.js");
const { reach, recovered } = await import("../lib/connection.js");
const { follow } = await import("../lib/feed.js");

const refusal = (status) => new Response(JSON.stringify({ error: "x", message: "A hiccup." }), { status });
/** A body of which only the beginning comes. */
const cut = () => new Response(new ReadableStream({
  start: (body) => body.enqueue(new TextEncoder().encode('{"events":[{"seq')),
  pull: (body) => body.error(new TypeError("network error")),
}));

/** Answers in this order, the last one for ever. @returns what counts the requests */
function host(t, ...answers) {
  let asked = 0;
  t.mock.method(globalThis, "fetch", async (path) => (path === "/health" ? new Response("ok") : answers[Math.min(asked++, answers.length - 1)]()));
  // Pauses pass at once.
  t.mock.method(globalThis, "setTimeout", (go) => (queueMicrotask(go), 0));
  return () => asked;
}

test("an answer that breaks off is none: it is asked for again, and the host counts as lost until then", async (t) => {
  const asked = host(t, cut, () => Response.json({ events: [] }));
  const before = recovered.peek();
  assert.deepEqual(await json("GET", "/v1/x"), { events: [] });
  assert.equal(asked(), 2);
  assert.deepEqual([reach.peek(), recovered.peek() > before], ["online", true]);
});

test("what may have happened is not sent again, and what is not JSON is no lost line", async (t) => {
  const asked = host(t, cut, () => new Response("<html>a proxy</html>"));
  await assert.rejects(json("POST", "/v1/x", { body: {} }), { status: 0, code: "unreachable" });
  assert.equal(asked(), 1);
  const before = recovered.peek();
  await assert.rejects(json("GET", "/v1/x"), { status: 200, message: "The answer is not JSON." });
  assert.equal(asked(), 2);
  assert.ok(recovered.peek() <= before + 1 && reach.peek() === "online");
});

test("a read goes on after any failure that may pass, and not after a refusal", async (t) => {
  const asked = host(t, () => refusal(500), () => refusal(408), () => Response.json(1), () => refusal(501));
  assert.equal(await json("GET", "/v1/x"), 1);
  assert.equal(asked(), 3);
  await assert.rejects(json("GET", "/v1/x"), { status: 501 });
  assert.equal(asked(), 4);
});

test("a stream is opened again after a failure that may pass, and ends with a refusal", async (t) => {
  const asked = host(t, () => refusal(500), () => refusal(503), () => refusal(408), () => new Response(": hello\n\n"), () => refusal(404));
  const states = [];
  await follow({ path: "/v1/x", signal: new AbortController().signal, onState: (state) => states.push(state), onFrames() {} });
  assert.equal(asked(), 5);
  assert.deepEqual(states.filter((one) => one !== "connecting"), ["waiting", "waiting", "waiting", "live", "waiting", "failed"]);
});
