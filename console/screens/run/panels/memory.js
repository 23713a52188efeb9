// What the run remembered as of the playhead, and what came and went since a point before.
import { askedView } from "../../../components/asked-view.js";
import { copyMenu } from "../../../components/copy-menu.js";
import { ago } from "../../../components/time.js";
import { h } from "../../../lib/dom.js";
import { number, plural, shortId } from "../../../lib/format.js";
import { address, link } from "../../../lib/router.js";
import { signal } from "../../../lib/signal.js";
import { note } from "./parts.js";
import { baselineSelect, beforeAndNow } from "./since.js";

/** @typedef {import("../../../types.js").MemoryEntry} MemoryEntry */
/** @type {import("./baseline.js").BaselineId[]} */
const WANTED = ["previous", "fork", "start"];
const PART = 100;

/** @type {import("../context.js").Panel} */
export default {
  id: "memory",
  title: "Memory",
  appliesTo: () => true,
  mount(root, ctx) {
    const filter = signal("");
    const answer = beforeAndNow(ctx, WANTED, ctx.surroundingsAt);
    root.append(
      h("div", { class: "in-bar" }, baselineSelect(ctx, WANTED),
        h("input", { type: "search", class: "small-field push", placeholder: "Find", "aria-label": "Find in memory", onInput: (/** @type {Event} */ event) => (filter.value = /** @type {HTMLInputElement} */ (event.target).value.toLowerCase()) })),
      askedView(answer, ({ was, is }) => {
        if (!is.memory) return note("This key may not read memory. Sign in with one that has the scope memory:read.");
        /** @type {MemoryEntry[]} */
        const now = is.memory;
        /** @type {MemoryEntry[]} */
        const then = was?.memory ?? [];
        const [here, there] = [new Set(now.map((one) => one.id)), new Set(then.map((one) => one.id))];
        const gone = then.filter((one) => !here.has(one.id));
        const fresh = now.filter((one) => !there.has(one.id)).length;
        return [
          h("div", { class: "in-head" },
            h("span", { class: "muted" }, `${plural(now.length, "entry", "entries")} as of #${number(is.seq)}, version ${number(is.memoryVersion)}`,
              fresh > 0 && h("span", { class: "good-text" }, ` · ${number(fresh)} new`), gone.length > 0 && h("span", { class: "bad-text" }, ` · ${number(gone.length)} gone`)),
            copyMenu(() => ({ request: { path: `/v1/host/baton/runs/${ctx.runId}/surroundings?at=${is.seq}` }, baton: ["run", "show", ctx.runId, "--at", String(is.seq)], json: now }))),
          () => {
            const fits = (/** @type {MemoryEntry} */ one) => filter.value === "" || `${one.content} ${one.tags.join(" ")}`.toLowerCase().includes(filter.value);
            const shown = [...gone.filter(fits).map((one) => entry(one, "is-gone")), ...now.filter(fits).map((one) => entry(one, there.has(one.id) ? "" : "is-new"))];
            if (shown.length === 0) return note(now.length === 0 ? "Nothing is remembered as of here." : "No entry has this text.");
            return parts(shown);
          },
          note("Scope ", link(address("/memory/:scope", { scope: is.memoryScope }), { class: "mono" }, shortId(is.memoryScope)), ", as this run sees it: what was there when it began, what it wrote, what its children handed back."),
        ];
      }));
  },
};

/** @param {MemoryEntry} one @param {"" | "is-new" | "is-gone"} kind */
function entry(one, kind) {
  return h("li", { class: ["mem", kind] },
    h("div", { class: "mem-text" }, kind !== "" && h("span", { class: "mem-kind" }, kind === "is-new" ? "new" : "gone"), one.content),
    h("div", { class: "row wrap small muted" },
      one.tags.map((tag) => h("span", { class: "tag" }, tag)), h("span", { title: one.id, class: "mono" }, shortId(one.id)), ago(one.createdAt),
      one.expiresAt && h("span", null, "expires ", ago(one.expiresAt))));
}

/** Long lists come in parts. @param {HTMLElement[]} items */
function parts(items) {
  const list = h("ul", { class: "mems" }, items.slice(0, PART));
  if (items.length <= PART) return list;
  const more = h("button", { type: "button", class: "small", onClick: () => (list.append(...items.slice(PART)), more.remove()) }, `Show ${plural(items.length - PART, "more entry", "more entries")}`);
  return h("div", { class: "stack" }, list, more);
}
