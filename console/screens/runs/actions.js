// What can be done to several runs at once.
import { confirmThen } from "../../components/dialog.js";
import { api } from "../../lib/api.js";
import { download } from "../../lib/copy.js";
import { h } from "../../lib/dom.js";
import { plural, shortId } from "../../lib/format.js";
import { toast, toastError } from "../../lib/toast.js";
import { hasEnded } from "./row.js";

/** @typedef {import("../../types.js").RunItem} RunItem */
/** As many as one request takes. */
const AT_ONCE = 100;

/** Asks, then cancels those that have not ended. @param {RunItem[]} runs @param {() => void} done */
export function cancelRuns(runs, done) {
  const live = runs.filter((run) => !hasEnded(run));
  const [only] = live;
  if (!only) return toast("Nothing to cancel: the run has ended.");
  const below = live.reduce((sum, run) => sum + Math.max(run.summary?.children ?? 0, run.summary?.descendants ?? 0), 0);
  const what = live.length === 1 ? shortId(only.runId) : plural(live.length, "run");
  return confirmThen({
    title: `Cancel ${what}?`,
    text: h("p", null, `What is under way stops, and cannot be taken up again. `, below > 0 ? `With it ${below === 1 ? "goes" : "go"} what was started below: ${plural(below, "run")}.` : "", " Calls that already left are not undone."),
    confirm: live.length === 1 ? "Cancel the run" : `Cancel ${plural(live.length, "run")}`,
    danger: true,
    // A whole tree asks for more than a click.
    ...(below > 0 || live.length > 1 ? { typed: live.length > 1 ? String(live.length) : only.runId.slice(-6) } : {}),
    act: async () => {
      const failures = [];
      for (let from = 0; from < live.length; from += AT_ONCE) {
        const { results } = await api.runs.cancelMany(live.slice(from, from + AT_ONCE).map((run) => run.runId), "Cancelled in the console");
        failures.push(...results.filter((result) => !result.ok));
      }
      if (failures.length > 0) toast(`${plural(failures.length, "run")} could not be cancelled: ${failures[0]?.error?.message ?? ""}`, { kind: "error" });
      else toast(live.length === 1 ? "The run is being cancelled" : `${plural(live.length, "run")} are being cancelled`);
      done();
    },
  });
}

/** Saves ended runs as files that another host takes in. @param {RunItem[]} runs */
export async function exportRuns(runs) {
  const ended = runs.filter(hasEnded);
  for (const run of ended) {
    try {
      download(`${run.runId}.baton.jsonl`, await api.runs.export(run.runId));
    } catch (error) {
      return toastError(error, `Exporting ${shortId(run.runId)}`);
    }
  }
  const left = runs.length - ended.length;
  return toast(`${plural(ended.length, "run")} exported${left > 0 ? `; ${plural(left, "run")} have not ended and were left out` : ""}`);
}
