// Two values or two texts, and what is different. Equal stretches of a text are folded.
import { diffJson, diffText } from "../lib/diff.js";
import { h } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const AROUND = 3;

/** Two JSON values, by place. @param {unknown} before @param {unknown} after */
export function jsonDiff(before, after) {
  const { changes, truncated } = diffJson(before, after);
  const text = (/** @type {unknown} */ value) => JSON.stringify(value, null, 2) ?? "";
  return h("bt-diff", changes.length > 0 ? { role: "list", "aria-label": "Differences" } : null,
    changes.length === 0 && h("p", { class: "muted" }, "No difference."),
    changes.map((change) => h("div", { class: "df-change", role: "listitem" },
      h("span", { class: "muted" }, change.path || "/", h("span", { class: "visually-hidden" }, ` ${change.kind}`)),
      change.kind !== "added" && h("div", { class: "removed" }, `− ${text(change.before)}`),
      change.kind !== "removed" && h("div", { class: "added" }, `+ ${text(change.after)}`))),
    truncated && h("p", { class: "muted", role: "listitem" }, "There are more differences than are shown."));
}

/** Two texts, by line. @param {string} before @param {string} after */
export function textDiff(before, after) {
  const lines = diffText(before, after);
  const near = new Set();
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    for (let i = index - AROUND; i <= index + AROUND; i += 1) near.add(i);
  });
  const view = h("bt-diff", { role: "group", "aria-label": "Differences" });
  if (near.size === 0) view.append(h("p", { class: "muted" }, "No difference."));
  for (let i = 0; i < lines.length; i += 1) {
    if (near.has(i)) {
      view.append(draw(/** @type {import("../lib/diff.js").Line} */ (lines[i])));
      continue;
    }
    let end = i;
    while (end < lines.length && !near.has(end)) end += 1;
    const folded = lines.slice(i, end);
    const button = h("button", { type: "button", class: "small quiet", onClick: () => button.replaceWith(...folded.map(draw)) }, `${plural(folded.length, "equal line")}`);
    view.append(button);
    i = end - 1;
  }
  return view;
}

/** @param {import("../lib/diff.js").Line} line */
function draw(line) {
  const sign = { same: " ", added: "+", removed: "−" }[line.kind];
  return h("div", { class: ["df-line", line.kind] },
    h("span", { class: "at" }, line.before ?? ""), h("span", { class: "at" }, line.after ?? ""), h("span", null, sign), h("span", null, line.text));
}
