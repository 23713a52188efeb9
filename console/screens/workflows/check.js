// A text, with its lines counted, and what the host would say to it. Nothing is registered unless that is asked for.
import { digestView } from "../../components/copy-menu.js";
import { confirmThen } from "../../components/dialog.js";
import { api } from "../../lib/api.js";
import { fill, h, uid } from "../../lib/dom.js";
import { isAbort } from "../../lib/error.js";
import { number, plural } from "../../lib/format.js";
import { address, link } from "../../lib/router.js";
import { onEnd } from "../../lib/signal.js";
import { toast } from "../../lib/toast.js";
import { failed } from "../../components/states.js";

/** @typedef {import("../../types.js").Problem} Problem */
const REST = 400;

/** @param {string} start @param {() => void} [registered] what to do when a version was added */
export function checkBox(start, registered) {
  const id = uid("definition");
  const lines = h("pre", { class: "ck-lines", "aria-hidden": "true" });
  const field = h("textarea", { id, class: "ck-text", spellcheck: "false", wrap: "off", rows: 22, value: start, placeholder: "Paste a definition: JSON with id, name, version, nodes, edges, …" });
  const verdict = h("div", { class: "ck-verdict", role: "status" });
  /** @type {Set<number>} */
  let wrong = new Set();
  let left = new AbortController();
  /** @type {number | undefined} */
  let timer;
  const count = () => {
    const all = field.value.split("\n").length;
    fill(lines, Array.from({ length: all }, (_, index) => h("span", { class: wrong.has(index + 1) ? "wrong" : "" }, index + 1)));
    lines.scrollTop = field.scrollTop;
  };
  const check = async () => {
    left.abort();
    left = new AbortController();
    const text = field.value;
    wrong = new Set();
    if (text.trim() === "") {
      fill(verdict, h("p", { class: "muted" }, "It is checked as you type; nothing is registered by that."));
      return count();
    }
    try {
      const answer = await api.workflows.validate(text, { signal: left.signal });
      wrong = new Set(answer.problems.map((one) => one.line));
      count();
      fill(verdict, answer.valid ? accepted(answer, text, () => (registered?.(), check())) : refused(answer.problems, (problem) => jump(field, problem)));
    } catch (error) {
      if (!isAbort(error)) fill(verdict, failed(error, check));
    }
    return undefined;
  };
  field.addEventListener("input", () => {
    count();
    clearTimeout(timer);
    timer = setTimeout(check, REST);
  });
  field.addEventListener("scroll", () => (lines.scrollTop = field.scrollTop));
  onEnd(() => (clearTimeout(timer), left.abort()));
  count();
  void check();
  return h("div", { class: "check" },
    h("div", { class: "stack" }, h("label", { for: id }, "Definition"), h("div", { class: "ck-field" }, lines, field)), verdict);
}

/** @param {import("../../types.js").Validation} answer @param {string} text @param {() => void} done */
function accepted({ workflowId = "", digest = "", current }, text, done) {
  const here = address("/workflows/:workflowId", { workflowId });
  return [
    h("p", { class: "ck-line good" }, h("strong", null, "It fits.")),
    h("p", null, current ? ["This is the newest version of ", link(here, { class: "mono" }, workflowId), " already."] : ["It would become the newest version of ", h("span", { class: "mono" }, workflowId), "."]),
    h("p", { class: "row wrap muted small" }, "Digest ", digestView(digest)),
    !current && h("button", { type: "button", onClick: () => confirmThen({
      title: `Register ${workflowId}?`, text: h("p", null, "Runs that start from now on use this text. Runs under way keep the version they began with."), confirm: "Register",
      act: async () => {
        const made = await api.workflows.register(JSON.parse(text));
        toast(`${made.workflowId} is at version ${made.version}`);
        done();
      },
    }) }, "Register…"),
  ];
}

/** @param {Problem[]} problems @param {(problem: Problem) => void} show */
function refused(problems, show) {
  return [
    h("p", { class: "ck-line bad" }, h("strong", null, `${plural(problems.length, "problem")}.`), h("span", { class: "muted" }, " Choose one to go to its line.")),
    h("ol", { class: "ck-problems" }, problems.map((one) => h("li", null, h("button", { type: "button", class: "ck-problem", onClick: () => show(one) },
      h("span", { class: "ck-at mono" }, `${number(one.line)}:${number(one.column)}`), h("span", null, one.message, one.pointer && h("span", { class: "muted small mono" }, ` ${one.pointer}`)))))),
  ];
}

/** Puts the cursor there and brings the line into view. @param {HTMLTextAreaElement} field @param {Problem} problem */
function jump(field, { line, column }) {
  const all = field.value.split("\n");
  const start = all.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  field.focus();
  field.setSelectionRange(start + Math.max(0, column - 1), start + (all[line - 1]?.length ?? 0));
  const height = parseFloat(getComputedStyle(field).lineHeight) || 18;
  field.scrollTop = Math.max(0, (line - 1) * height - field.clientHeight / 3);
}
