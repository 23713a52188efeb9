// What a question is about: what it shows, what is held, which call is in doubt, how many have to agree.
import { h } from "../../lib/dom.js";
import { holdsDecision, restOf, subjectOf } from "../../screens/run/answers.js";
import { confidenceMeter } from "../../screens/run/confidence.js";
import { decisionText } from "../../screens/run/words.js";
import { jsonView } from "../json-view.js";

/** @param {import("../../types.js").InterruptItem} question @param {number | null} [floor] of a supervisor's confidence, where known @returns {import("../../lib/dom.js").Child[]} */
export function about(question, floor = null) {
  const { data, kind } = question;
  const subject = subjectOf(question);
  const held = holdsDecision(question);
  const rest = restOf(question);
  return [
    data?.description && h("p", null, data.description),
    held && floor !== null && typeof subject?.confidence === "number" && confidenceMeter(subject.confidence, floor),
    held ? h("p", { class: "mono" }, decisionText(subject))
    : typeof subject === "string" ? h("pre", { class: "box prose" }, subject)
    : subject !== undefined && h("div", { class: "box" }, jsonView(subject, 3)),
    kind === "x-host-baton-effect-unknown" && h("div", { class: "box" }, jsonView({ tool: data?.toolName, callId: data?.callId, inputs: data?.inputs }, 2)),
    !held && rest.length > 0 && h("div", { class: "box" }, jsonView(Object.fromEntries(rest), 2)),
    typeof data?.requiredApprovals === "number" && quorum(data),
  ];
}

/** @param {any} data */
function quorum({ requiredApprovals, approversList, rejectionPolicy }) {
  const of = Array.isArray(approversList) && approversList.length > 0 ? ` of ${approversList.join(", ")}` : "";
  const against = rejectionPolicy === "majority" ? `More than half of ${requiredApprovals} rejections end it.` : "One rejection ends it.";
  return h("p", { class: "muted small" }, `${requiredApprovals === 1 ? "1 approval is" : `${requiredApprovals} approvals are`} needed${of}. ${against}`);
}
