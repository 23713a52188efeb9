// What the run knows, beside its question. Where the question shows nothing of its own, this is what is to be judged.
import { h } from "../../lib/dom.js";
import { hasContent } from "../../screens/run/answers.js";
import { jsonView } from "../json-view.js";

/** @param {import("../../types.js").InterruptItem} question @param {{ inputs: Record<string, unknown>, variables: Record<string, unknown> } | null | undefined} run */
export function known(question, run) {
  const variables = run?.variables ?? {};
  // Inputs that became variables are said once.
  const inputs = Object.fromEntries(Object.entries(run?.inputs ?? {}).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(variables[name])));
  const all = { ...(Object.keys(inputs).length > 0 ? { inputs } : {}), ...variables };
  if (Object.keys(all).length === 0) return null;
  const open = !hasContent(question);
  return h("details", { class: "q-context", open }, h("summary", null, open ? "What it is about: what the run knows" : "Context: what the run knows"),
    h("div", { class: "box" }, jsonView(all, open ? 4 : 2)));
}
