// What went in and what came out of whatever the selected event is part of.
import { askedView } from "../../../components/asked-view.js";
import { copyMenu } from "../../../components/copy-menu.js";
import { jsonView } from "../../../components/json-view.js";
import { api } from "../../../lib/api.js";
import { asked } from "../../../lib/asked.js";
import { h } from "../../../lib/dom.js";
import { duration, plural } from "../../../lib/format.js";
import { operationOf, runOperation } from "./operation.js";
import { data, note, runLink, section, seqLink, stable } from "./parts.js";

/** @typedef {import("../context.js").RunContext} RunContext */

/** @type {import("../context.js").Panel} */
export default {
  id: "io",
  title: "Input / Output",
  appliesTo: () => true,
  mount(root, ctx) {
    const shown = stable(() => {
      const event = ctx.selection.value;
      // A run that grows may answer what is open.
      void ctx.log.newest.value;
      return (event && operationOf(ctx, event)) || runOperation(ctx, ctx.seq.value);
    }, ({ title, events, outputNote }) => `${title} ${events[0]?.sequence} ${events.length} ${outputNote}`);
    root.append(h("div", null, () => {
      const operation = shown.value;
      return operation.childRunId ? childRun(operation.childRunId, ctx, operation) : [head(ctx, operation), ...both(operation)];
    }));
  },
};

/** @param {RunContext} ctx @param {import("./operation.js").Operation} operation */
function head(ctx, { title, events, input, output }) {
  const [first, last] = [events[0], events.at(-1)];
  return h("div", { class: "in-bar" }, h("strong", { class: "wrap-any" }, title),
    first && last && last !== first && h("span", { class: "muted" }, seqLink(ctx, first.sequence), " to ", seqLink(ctx, last.sequence), ` · ${duration(Date.parse(last.timestamp) - Date.parse(first.timestamp))}`),
    h("span", { class: "push" }, copyMenu(() => ({ json: { input, output } }))));
}

/** @param {import("./operation.js").Operation} operation */
function both({ input, output, inputNote, outputNote }) {
  return [
    section("Input", input === undefined ? note(inputNote ?? "Nothing.") : data(input, jsonView)),
    section("Output", output === undefined ? note(outputNote ?? "Nothing.") : data(output, jsonView)),
  ];
}

/** A child's own run knows what it was given. @param {string} runId @param {RunContext} ctx @param {import("./operation.js").Operation} operation */
function childRun(runId, ctx, operation) {
  const answer = asked((signal) => api.runs.get(runId, { signal }));
  const harvest = operation.events.find((one) => one.payload.phase === "output.harvested")?.payload.harvestedKeys;
  return [head(ctx, operation), askedView(answer, (run) => [
    note("Run ", runLink(runId), `, ${run.status}`, harvest ? `, ${plural(harvest.length, "variable")} harvested: ${harvest.join(", ") || "none"}` : ""),
    section("Input", data(run.inputs, jsonView)),
    section(run.outputs === undefined ? "Variables at its end" : "Output", data(run.error ?? run.outputs ?? run.variables, jsonView)),
  ])];
}
