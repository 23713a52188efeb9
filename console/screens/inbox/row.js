// One line of the inbox.
import { ago } from "../../components/time.js";
import { h } from "../../lib/dom.js";
import { link } from "../../lib/router.js";
import { holdsDecision, titleOf } from "../run/answers.js";

/** @typedef {import("../../types.js").InterruptItem} InterruptItem */

/** @param {InterruptItem} question */
export function kindWord(question) {
  if (question.kind === "x-host-baton-effect-unknown") return "unknown effect";
  if (holdsDecision(question)) return "held decision";
  if (question.data?.artifactType === "sub-run-output") return "merge";
  if (question.data?.contextType === "budget" || /^budget:/.test(question.data?.artifactId ?? "")) return "budget";
  return question.kind.replace(/^x-host-baton-/, "").replaceAll("-", " ");
}

const SOON = 3_600_000;

/** @param {InterruptItem} question @param {string} href @param {() => boolean} current */
export function row(question, href, current) {
  const due = question.expiresAt && Date.parse(question.expiresAt) - Date.now() < SOON;
  return h("li", null, link(href, { class: "q-row", "aria-current": () => (current() ? "true" : null) },
    h("span", { class: "q-title" }, titleOf(question)),
    h("span", { class: "q-sub" },
      h("span", { class: ["tag", question.kind === "x-host-baton-effect-unknown" && "amber"] }, kindWord(question)),
      h("span", { class: "clip grow" }, question.workflowId),
      question.expiresAt && h("span", { class: due ? "q-due" : "" }, "expires ", ago(question.expiresAt)),
      h("span", null, ago(question.requestedAt)))));
}
