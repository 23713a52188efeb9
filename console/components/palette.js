// The command palette and the help: two views of the same registry.
import { h, uid } from "../lib/dom.js";
import { commands, setSingleKeys, shown, singleKeys } from "../lib/keys.js";
import { address, navigate } from "../lib/router.js";
import { openDialog } from "./dialog.js";

/** @param {string | undefined} keys */
function keyCaps(keys) {
  return h("span", { class: "keys" }, keys ? shown(keys).map((key) => h("kbd", null, key)) : null);
}

/** What there is, or only what applies now; the newest of those with the same key. @param {boolean} now */
function known(now) {
  const all = commands.peek().filter((one) => !one.hidden && (!now || (one.when?.() ?? true)));
  return all.filter((one, index) => !one.keys || all.findLastIndex((other) => other.keys === one.keys) === index);
}

/** Letters in order, wherever they are; earlier and denser is better. @param {string} text @param {string} wanted */
function score(text, wanted) {
  let at = -1;
  let points = 0;
  for (const letter of wanted) {
    const next = text.indexOf(letter, at + 1);
    if (next < 0) return -1;
    points += next === at + 1 ? 3 : text[next - 1] === " " || next === 0 ? 2 : 0;
    at = next;
  }
  return points;
}

export function openPalette() {
  const all = known(true);
  const id = uid("palette");
  const input = h("input", { type: "text", role: "combobox", "aria-label": "Command, or the id of a run", "aria-expanded": "true", "aria-controls": id, placeholder: "Type a command, or the id of a run", autocomplete: "off", spellcheck: "false" });
  const list = h("div", { role: "listbox", id, "aria-label": "Commands" });
  const dialog = h("dialog", { class: "palette", "aria-label": "Command palette" }, input, list);
  /** @type {import("../lib/keys.js").Command[]} */
  let found = [];
  let chosen = 0;
  const run = (/** @type {number} */ index) => {
    dialog.close();
    found[index]?.run();
  };
  const choose = (/** @type {number} */ to) => {
    chosen = found.length === 0 ? 0 : (to + found.length) % found.length;
    [...list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === chosen)));
    input.setAttribute("aria-activedescendant", `${id}-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  const draw = () => {
    const wanted = input.value.trim().toLowerCase();
    const ranked = all.map((one) => ({ one, points: score(`${one.label} ${one.group}`.toLowerCase(), wanted) }));
    found = ranked.filter(({ points }) => points >= 0).sort((a, b) => (wanted ? b.points - a.points : 0)).map(({ one }) => one);
    if (/^[a-z]+_[\w-]+$/i.test(wanted)) {
      found.unshift({ label: `Open run ${wanted}`, group: "Go to", run: () => navigate(address("/runs/:runId", { runId: wanted })) });
    }
    list.replaceChildren(...found.map((one, index) => h("div", { role: "option", id: `${id}-${index}`, onClick: () => run(index) },
      h("span", null, one.label), h("span", { class: "muted small" }, one.group), keyCaps(one.keys))));
    if (found.length === 0) list.append(h("p", { class: "state muted" }, "No such command."));
    choose(0);
  };
  input.addEventListener("input", draw);
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") run(chosen);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  draw();
  input.focus();
}

export function openHelp() {
  /** @type {Map<string, import("../lib/keys.js").Command[]>} */
  const groups = new Map();
  for (const one of known(false)) {
    if (one.keys) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  }
  const box = h("input", { type: "checkbox", checked: singleKeys.peek(), onChange: () => setSingleKeys(box.checked) });
  openDialog("Keyboard", (close) => [
    h("div", { class: "help" }, [...groups].map(([group, list]) => h("section", null, h("h3", null, group),
      h("ul", null, list.map((one) => h("li", null, h("span", null, one.label), keyCaps(one.keys))))))),
    h("label", { class: "row" }, box, "Single keys do something (turn this off if they get in your way)"),
    h("div", { class: "actions" }, h("button", { type: "button", onClick: close }, "Close")),
  ], { class: "wide" });
}
