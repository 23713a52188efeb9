// What everything on the screen of one run shares: the log, where the playhead stands, what was chosen, and the run as
// it was at any sequence. Panels of the inspector get this object and nothing else.
//
//   export default { id, title, appliesTo(ctx), mount(root, ctx) }   in panels/*.js, listed in inspector.js
//
// `mount` runs in a scope of its own: effects made in it end with it. `appliesTo` may read signals; it is asked again
// when they change. A panel that needs the run's state reads `ctx.state` in an effect; one that needs another sequence
// (the state before, say) asks `ctx.stateAt`.
import { api } from "../../lib/api.js";
import { inOrder, newerRow } from "../../lib/asked.js";
import { asApiError } from "../../lib/error.js";
import { batch, computed, effect, onEnd, signal } from "../../lib/signal.js";
import { heldWith } from "./held.js";
import { openLog } from "./log.js";
import { Past } from "./past.js";

/** @typedef {import("../../types.js").RunEvent} RunEvent */
/** @typedef {import("../../types.js").RunSnapshot} RunSnapshot */
/** @typedef {import("../../types.js").RunItem} RunItem */
/** @typedef {import("../../types.js").RunState} RunState */
/** @typedef {import("./log.js").Log} Log */
/** @template T @typedef {import("../../lib/signal.js").Signal<T>} Signal */
/**
 * What was loaded for a sequence. While another one is loading, `value` is still the one before, so that nothing
 * flashes; `seq` says which one it is.
 * @template T @typedef {{ seq: number, value: T | null, error: unknown, loading: boolean }} Loaded
 */

/**
 * @typedef {object} RunContext
 * @property {string} runId
 * @property {Log} log every event that is loaded, by sequence, and what follows from them; see `log.js`
 * @property {Signal<RunSnapshot | null>} snapshot the run as it is now, whatever the playhead says
 * @property {Signal<RunItem | null>} item the run's row in the list of runs, now: usage, budget, iteration
 * @property {import("./held.js").Held} held why nobody steps it, if the host leaves its tree alone
 * @property {Signal<number>} seq where the playhead stands; everything shows as of this sequence. −1 before anything is loaded
 * @property {Signal<number>} calm the same for whatever has to be asked of the host: while it is live it moves a few times a second at most, so that answers can keep up with a busy run
 * @property {Signal<boolean>} reached whether the log is loaded as far as the playhead: read it with `seq` where facts of the log are shown, which no signal tells
 * @property {Signal<boolean>} live whether the playhead follows the newest event
 * @property {Signal<RunEvent | null>} selection the event at the playhead, null while it is live: then panels show the run as a whole
 * @property {Signal<Loaded<RunState>>} state the run as of the playhead; follows it, a little behind while it moves
 * @property {(seq: number, signal?: AbortSignal) => Promise<RunState>} stateAt as of any sequence; remembered
 * @property {(seq: number, signal?: AbortSignal) => Promise<any>} surroundingsAt memory and files only, fast for long logs; remembered
 * @property {(seq: number | null, options?: { push?: boolean }) => void} moveTo moves the playhead; null follows the newest event
 * @property {Signal<number>} wantsEnd how often the newest event was asked for, though the playhead may be there
 * @property {() => void} again loads the rest of the log, where that failed
 * @property {() => void} refresh asks for `snapshot` and `item` again, after something was done to the run
 * @property {AbortSignal} signal aborted when the screen goes
 * @property {import("../../types.js").ScreenContext} screen
 */

/**
 * One tab of the inspector.
 * @typedef {object} Panel
 * @property {string} id the value of `?tab=`
 * @property {string} title
 * @property {(ctx: RunContext) => boolean} appliesTo
 * @property {(root: HTMLElement, ctx: RunContext) => void | (() => void)} mount
 */

/** @param {string} runId @param {import("../../types.js").ScreenContext} screen @returns {RunContext} */
export function createContext(runId, screen) {
  const log = openLog(runId);
  const snapshot = signal(/** @type {RunSnapshot | null} */ (null));
  const item = signal(/** @type {RunItem | null} */ (null));
  const { wanted, moveTo, wantsEnd } = playhead(screen, log);
  const live = computed(() => wanted.value === null);
  // A sequence that is not loaded yet is where the playhead will be; the log fills in towards it.
  const seq = computed(() => (wanted.value === null ? log.newest.value : log.over ? Math.min(wanted.value, log.newest.value) : wanted.value));
  const reached = computed(() => log.newest.value >= seq.value);
  const selection = computed(() => (live.value || log.newest.value < seq.value ? null : log.at(seq.value) ?? null));
  const calm = calmed(seq, live);
  const states = new Past((at, options) => api.runs.state(runId, at, options), screen.signal);
  const around = new Past((at, options) => api.runs.surroundings(runId, at, options), screen.signal);
  const unread = signal(false);
  const begin = { run: inOrder(), row: inOrder() };
  const refresh = () => load(runId, screen.signal, begin, { snapshot, unread, item });
  const isThere = () => reached.value && !(live.value && log.phase.value === "loading");
  return {
    runId, log, snapshot, item, held: heldWith({ runId, snapshot, unread, item, refresh }, screen.signal), seq, calm, reached, live, selection, moveTo, wantsEnd,
    again: () => log.again(screen.signal),
    state: states.follow(calm, isThere),
    stateAt: (at, signal) => states.get(at, signal),
    surroundingsAt: (at, signal) => around.get(at, signal),
    refresh,
    signal: screen.signal,
    screen,
  };
}

const CALM = 500;

/** @param {Signal<number>} seq @param {Signal<boolean>} live @returns {Signal<number>} */
function calmed(seq, live) {
  const calm = signal(seq.peek());
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let resting;
  const go = () => {
    clearTimeout(resting);
    resting = undefined;
    calm.value = seq.peek();
  };
  const move = () => {
    if (calm.peek() === seq.peek()) return;
    go();
    if (live.peek()) resting = setTimeout(() => ((resting = undefined), move()), CALM);
  };
  effect(() => {
    void [seq.value, live.value];
    if (!live.value) go();
    else if (resting === undefined) move();
  });
  onEnd(() => clearTimeout(resting));
  return calm;
}

/** Browsers allow a hundred changes of the address in half a minute; a playhead that is dragged makes more. */
const WRITE_AFTER = 160;

/**
 * Where the playhead is wanted: what the address says, and what was moved since. null follows the newest event.
 * @param {import("../../types.js").ScreenContext} screen @param {Log} log
 */
function playhead(screen, log) {
  let written = readSeq(screen.query.peek().get("seq"));
  const wanted = signal(written);
  const wantsEnd = signal(0);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let writing;
  effect(() => {
    const said = readSeq(screen.query.value.get("seq"));
    if (said === written) return;
    written = said;
    clearTimeout(writing);
    wanted.value = said;
  });
  onEnd(() => clearTimeout(writing));
  /** @type {RunContext["moveTo"]} */
  const moveTo = (to, options = {}) => {
    const next = to === null ? null : Math.max(0, Math.min(to, Math.max(0, log.newest.peek())));
    wanted.value = next;
    if (to === null) wantsEnd.value += 1;
    clearTimeout(writing);
    const write = () => {
      written = next;
      screen.setQuery({ seq: next }, options);
    };
    if (options.push) write();
    else writing = setTimeout(write, WRITE_AFTER);
  };
  return { wanted, moveTo, wantsEnd };
}

/**
 * Each for itself: a run whose log does not read back has a row all the same.
 * @param {string} runId @param {AbortSignal} ended @param {{ run: () => () => boolean, row: () => () => boolean }} begin
 * @param {{ snapshot: Signal<RunSnapshot | null>, unread: Signal<boolean>, item: Signal<RunItem | null> }} into
 */
function load(runId, ended, begin, { snapshot, unread, item }) {
  const [runCounts, rowCounts] = [begin.run(), begin.row()];
  // The stream says what is wrong, and the shell whether the host answers; the rest of the run may still be shown.
  api.runs.get(runId, { signal: ended }).then((run) => {
    if (ended.aborted || !runCounts()) return;
    batch(() => {
      snapshot.value = run;
      unread.value = false;
    });
  }).catch((error) => {
    if (asApiError(error).status === 500 && runCounts()) unread.value = true;
  });
  api.runs.list({ idPrefix: runId, limit: 1 }, { signal: ended }).then(({ runs: [row] }) => {
    // Activity may have told more of the run meanwhile.
    if (!ended.aborted && rowCounts() && row) item.value = newerRow(item.peek(), row);
  }).catch(() => {});
}

/** @param {string | null} text @returns {number | null} */
function readSeq(text) {
  const seq = text === null || text === "" ? NaN : Number(text);
  return Number.isInteger(seq) && seq >= 0 ? seq : null;
}
