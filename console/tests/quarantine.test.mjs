// Trees that the host leaves alone, without a browser: the words, who is held, and the list that is asked for again.
import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.addEventListener ??= () => {};
globalThis.sessionStorage ??= { getItem: () => null, setItem() {}, removeItem() {} };
globalThis.document ??= { hidden: false };
const { ApiError } = await import("../lib/error.js");
const { asBaton } = await import("../lib/copy.js");
const { signIn } = await import("../lib/session.js");
const { scope } = await import("../lib/signal.js");
const { causeWords, heldTrees, holderOf, lacking, PAGE, refusalWords } = await import("../lib/quarantine.js");

const tree = (root, more = {}) => ({ rootRunId: root, runId: root, seq: 2, cause: "step_panicked", detail: "", since: "2026-01-01T00:00:00Z", ...more });

test("each cause has words of its own, and one that is not known is named", () => {
  const causes = ["process_died", "process_died_again", "step_panicked", "does_not_fold", "commit_refused", "stuck"];
  const words = causes.map(causeWords);
  assert.equal(new Set(words.map(({ title }) => title)).size, causes.length);
  words.forEach(({ title, text }, at) => assert.ok(text.endsWith(".") && !title.includes(causes[at]) && !title.includes("_"), title));
  assert.deepEqual(causes.filter((one) => causeWords(one).risky), ["process_died", "process_died_again", "stuck"], "what takes the whole host along is asked for first");
  assert.match(causeWords("moon_phase").title, /moon_phase/);
  assert.match(causeWords("constructor").title, /constructor/);
});

test("a run is held with its tree, and a top that has ended is not", () => {
  const trees = [tree("a", { runId: "c" }), tree("b")];
  assert.equal(holderOf(trees, { runId: "a", status: "running" }), trees[0]);
  assert.equal(holderOf(trees, { runId: "x", rootRunId: "a", status: "completed" }), trees[0]);
  assert.equal(holderOf(trees, { runId: "c" }), trees[0], "the failing run, before its row is known");
  assert.equal(holderOf(trees, { runId: "b", status: "cancelled" }), undefined);
  assert.equal(holderOf(trees, { runId: "y", rootRunId: "z" }), undefined);
});

test("a second decision is no failure, and a key learns what it lacks until there is another", () => {
  assert.match(refusalWords(new ApiError(409, "run_conflict", "no")) ?? "", /^Already released/);
  assert.equal(lacking.peek(), "");
  assert.match(refusalWords(new ApiError(403, "forbidden", "no", { scopeRequired: "runs:cancel" })) ?? "", /runs:cancel/);
  assert.equal(lacking.peek(), "runs:cancel");
  signIn("another");
  assert.equal(lacking.peek(), "");
  for (const status of [0, 404, 500]) assert.equal(refusalWords(new ApiError(status, "", "no")), null);
});

test("the commands are those of the command line", () => {
  assert.deepEqual([asBaton(["run", "list", "--quarantined"]), asBaton(["run", "release", "run_1"])], ["baton run list --quarantined", "baton run release run_1"]);
});

/** Lets whatever was asked be answered. */
const answered = () => new Promise((done) => setTimeout(done, 5));

/** A store whose host holds these trees. @returns {Promise<{ store: ReturnType<typeof heldTrees>, asked: string[], end: () => void }>} */
async function over(t, held) {
  const asked = [];
  t.mock.method(globalThis, "fetch", async (path) => {
    asked.push(String(path));
    const query = new URL(path, "http://host").searchParams;
    const limit = Number(query.get("limit"));
    const trees = held().filter((one) => one.rootRunId > (query.get("cursor") ?? "")).slice(0, limit);
    return Response.json({ trees, ...(trees.length === limit ? { nextCursor: trees.at(-1).rootRunId } : {}) });
  });
  const here = scope();
  const store = here.run(() => heldTrees(new AbortController().signal));
  t.after(() => here.end());
  await answered();
  return { store, asked };
}

test("the list comes page by page as far as it is wanted, and is the same list while it says the same", async (t) => {
  let held = Array.from({ length: PAGE + 1 }, (_, at) => tree(`run_${String(at).padStart(4, "0")}`));
  const { store, asked } = await over(t, () => held);
  assert.deepEqual([store.list.peek()?.length, store.more.peek(), asked.length], [PAGE, true, 1]);
  await store.loadMore();
  assert.deepEqual([store.list.peek()?.length, store.more.peek(), asked.length], [PAGE + 1, false, 3]);
  const before = store.list.peek();
  await store.load();
  assert.equal(store.list.peek(), before);
  held = held.slice(1);
  await store.load();
  assert.equal(store.list.peek()?.length, PAGE);
  held = [];
  await store.load();
  assert.deepEqual([store.list.peek(), store.more.peek()], [[], false]);
});

test("an answer that comes late does not bring back what is gone", async (t) => {
  const { store } = await over(t, () => [tree("a")]);
  /** @type {((answer: Response) => void)[]} */
  const waiting = [];
  t.mock.method(globalThis, "fetch", () => new Promise((done) => waiting.push(done)));
  const [first, second] = [store.load(), store.load()];
  await answered();
  waiting[1]?.(Response.json({ trees: [] }));
  await second;
  waiting[0]?.(Response.json({ trees: [tree("a")] }));
  await first;
  assert.deepEqual(store.list.peek(), []);
});

test("a list that cannot be had says so, and what was known stays", async (t) => {
  const { store } = await over(t, () => [tree("a")]);
  t.mock.method(globalThis, "fetch", async () => Response.json({ error: "forbidden", message: "No." }, { status: 403 }));
  await store.load();
  assert.equal(/** @type {any} */ (store.error.peek()).status, 403);
  assert.equal(store.list.peek()?.length, 1);
});
