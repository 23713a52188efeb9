// One turn of the supervisor: what it decided and how sure it was, what was held and what people said, who worked, what
// came back and what it changed. The first tab of the inspector where there are turns.
import { jsonView } from "../../components/json-view.js";
import { statusMark } from "../../components/status.js";
import { h } from "../../lib/dom.js";
import { excerpt, number, shortId } from "../../lib/format.js";
import { turnWords } from "../../lib/limits.js";
import { address, link } from "../../lib/router.js";
import { confidenceMeter } from "./confidence.js";
import { fine } from "./event-row.js";
import { stable } from "./panels/parts.js";
import { decisionText, factOf, faultText } from "./words.js";

/** @typedef {import("./context.js").RunContext} RunContext */
/** @typedef {import("./turns.js").Turn} Turn */

/** @type {import("./context.js").Panel} */
export default {
  id: "turn",
  title: "Turn",
  appliesTo: (ctx) => {
    void ctx.log.newest.value;
    return ctx.log.facts.turns.at(ctx.seq.value) !== undefined;
  },
  mount(root, ctx) {
    // Drawn when something of the turn has happened, not with every event: what was opened or has the focus stays.
    const shown = stable(() => {
      void ctx.reached.value;
      const seq = ctx.seq.value;
      return { seq, turn: ctx.log.facts.turns.at(seq), bound: ctx.item.value?.summary?.iteration?.bound };
    }, ({ seq, turn, bound }) => JSON.stringify([turn && happened(turn, seq), bound]));
    root.append(h("div", { class: "turn" }, () => {
      const { seq, turn, bound } = shown.value;
      return turn ? view(ctx, turn, seq, bound) : h("p", { class: "muted" }, "No turn has begun.");
    }));
  },
};

/** What of a turn had happened. @param {Turn} turn @param {number} seq */
function happened({ number, decidedSeq, held, workers, merged, fanOut, join }, seq) {
  const at = [decidedSeq, fanOut?.sequence ?? -1, join?.sequence ?? -1, ...held.flatMap((one) => [one.seq, one.answerSeq]), ...workers.flatMap((one) => [one.seq, one.endSeq, one.harvestSeq]), ...merged.map((one) => one.seq)];
  return [number, at.map((one) => one <= seq && one), workers.map((one) => one.childRunId)];
}

/** @param {RunContext} ctx @param {Turn} turn @param {number} seq @param {Parameters<typeof turnWords>[1]} bound */
function view(ctx, turn, seq, bound) {
  const { facts } = ctx.log;
  const { own, title } = turnWords(turn.number, bound);
  const decided = turn.decidedSeq >= 0 && turn.decidedSeq <= seq;
  const held = turn.held.filter((one) => one.seq <= seq);
  const floor = held.at(-1)?.floor ?? facts.turns.list.flatMap((one) => one.held)[0]?.floor ?? null;
  const workers = turn.workers.filter((one) => one.seq <= seq);
  const merged = turn.merged.filter((one) => one.seq <= seq);
  const decision = decided ? turn.decision : null;
  return h("div", { class: "stack" },
    h("div", { class: "row wrap" }, h("h2", { class: "grow", title }, `Turn ${number(turn.number)}`, h("span", { class: "muted" }, own)),
      h("button", { type: "button", class: "small quiet", disabled: turn.number < 2, onClick: () => ctx.moveTo(facts.turns.list[turn.number - 2]?.seq ?? 0) }, "← Before"),
      h("button", { type: "button", class: "small quiet", disabled: () => (void ctx.log.newest.value, !facts.turns.list[turn.number]), onClick: () => ctx.moveTo(facts.turns.list[turn.number]?.seq ?? 0) }, "Next →")),
    section("Decision",
      decision ? h("p", { class: "mono turn-decision" }, decisionText({ ...decision, confidence: undefined })) : h("p", { class: "muted" }, held.length > 0 ? "Held; see below." : "Not decided yet."),
      decision && typeof decision.confidence === "number" && confidenceMeter(decision.confidence, floor),
      decision && h("p", { class: "small muted" }, "by ", turn.agentId, " at ", at(ctx, turn.decidedSeq)),
      decision?.nextWorkerInputs && h("details", null, h("summary", { class: "small muted" }, "Inputs for the workers"), jsonView(decision.nextWorkerInputs, 2))),
    held.length > 0 && section("Held", held.map((one) => h("div", { class: "turn-held" },
      h("p", { class: "mono" }, decisionText({ ...one.decision, confidence: undefined }), " ", at(ctx, one.seq)),
      confidenceMeter(one.confidence, one.floor),
      one.answerSeq >= 0 && one.answerSeq <= seq
        ? h("p", { class: "small" }, "Answered ", at(ctx, one.answerSeq), ": ", h("span", { class: "mono" }, answerText(one.answer)))
        : h("p", { class: "small wait-text" }, "Waits for a human.")))),
    (turn.fanOut && turn.fanOut.sequence <= seq) || workers.length > 0 ? section("Workers",
      turn.fanOut && turn.fanOut.sequence <= seq && h("p", { class: "small muted" }, factOf(turn.fanOut)),
      h("table", { class: "turn-workers" },
        h("thead", null, h("tr", null, ["Worker", "Run", "Took", "Harvest"].map((name) => h("th", null, name)))),
        h("tbody", null, workers.map((worker) => {
          const ended = worker.endSeq >= 0 && worker.endSeq <= seq;
          const [from, to] = [facts.times[worker.seq], facts.times[worker.endSeq]];
          return h("tr", null,
            h("td", { class: "nowrap" }, statusMark(ended ? worker.status : "running", { word: false }), " ", worker.workerId),
            h("td", null, worker.childRunId ? link(address("/runs/:runId", { runId: worker.childRunId }), { class: "mono", title: worker.childRunId }, shortId(worker.childRunId)) : "–"),
            h("td", { class: "num" }, ended && from !== undefined && to !== undefined ? fine(to - from) : "…"),
            h("td", null, ended && worker.error ? h("span", { class: "wrong" }, faultText(worker.error)) : worker.harvested && worker.harvestSeq <= seq ? [h("span", { class: "mono" }, worker.harvested.join(", ") || "nothing"), " ", at(ctx, worker.harvestSeq), worker.checksum && h("span", { class: "muted small mono", title: worker.checksum }, ` sha256 ${worker.checksum.slice(0, 8)}`)] : ""));
        }))),
      turn.join && turn.join.sequence <= seq && h("p", { class: "small muted" }, "Joined: ", factOf(turn.join))) : null,
    merged.length > 0 && section("Merged", h("dl", { class: "turn-merged" }, merged.map((one) => [
      h("dt", { class: "mono" }, one.name, " ", at(ctx, one.seq)),
      h("dd", { class: "mono small" }, one.previous !== undefined && excerpt(one.previous, 80) !== "" && h("del", null, excerpt(one.previous, 80)), h("ins", null, excerpt(one.next, 240)))]))));
}

/** @param {string} title @param {...import("../../lib/dom.js").Child} children */
const section = (title, ...children) => h("section", { class: "in-section" }, h("h3", null, title), ...children);

/** @param {RunContext} ctx @param {number} seq */
function at(ctx, seq) {
  return h("button", { type: "button", class: "seq-link", title: `Move the playhead to ${seq}`, onClick: () => ctx.moveTo(seq) }, `#${number(seq)}`);
}

/** @param {any} answer */
function answerText(answer) {
  if (!answer || typeof answer !== "object") return excerpt(answer, 120);
  const { action, editedArtifactData, refineFeedback, feedback } = answer;
  if (editedArtifactData) return `${action}: ${decisionText(editedArtifactData)}`;
  if (refineFeedback) return `${action}: “${excerpt(refineFeedback.text ?? refineFeedback, 160)}”`;
  return `${action ?? excerpt(answer, 160)}${feedback ? `: “${excerpt(feedback, 120)}”` : ""}`;
}
