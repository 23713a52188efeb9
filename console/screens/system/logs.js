// The last lines of the host's log. New ones come at the end; who scrolled up is left in peace.
import { h } from "../../lib/dom.js";
import { absolute, plural } from "../../lib/format.js";
import { signal } from "../../lib/signal.js";
import { card, closed } from "./facts.js";

/** @typedef {{ at: string, level: string, target: string, message: string }} Line */
const LEVELS = ["ERROR", "WARN", "INFO"];
/** Kept while the page redraws. */
const least = signal("INFO");
let fromEnd = 0;

/** @param {Line[] | null} lines */
export function logCard(lines) {
  if (!lines) return closed("Log");
  const list = h("ol", { class: "sys-log", tabindex: "0", "aria-label": "Log", onScroll: () => (fromEnd = list.scrollHeight - list.scrollTop - list.clientHeight) }, () => {
    const shown = lines.filter((line) => LEVELS.indexOf(line.level) <= LEVELS.indexOf(least.value));
    if (shown.length === 0) return h("li", { class: "muted" }, lines.length === 0 ? "Nothing at the level that this host logs." : "Nothing this serious.");
    return shown.map((line) => h("li", { class: line.level.toLowerCase() },
      h("span", { class: "muted", title: absolute(line.at) }, absolute(line.at).slice(11, 19)), h("span", { class: "level" }, line.level), h("span", { class: "wrap-any" }, line.message, h("span", { class: "muted" }, ` ${line.target}`))));
  });
  requestAnimationFrame(() => (list.scrollTop = list.scrollHeight - list.clientHeight - fromEnd));
  const select = h("select", { class: "wf-version", "aria-label": "How serious at least", onChange: () => (least.value = select.value) }, LEVELS.map((level) => h("option", { value: level, ".selected": level === least.peek() }, { ERROR: "errors", WARN: "warnings and errors", INFO: "everything" }[level] ?? level)));
  return card(h("span", { class: "row" }, "Log ", h("span", { class: "muted" }, plural(lines.length, "line")), h("span", { class: "push" }, select)), list);
}
