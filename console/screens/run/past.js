// Something as of a sequence: asked for once, remembered, and no longer wanted as soon as nobody waits for it.
import { recovered } from "../../lib/connection.js";
import { isAbort } from "../../lib/error.js";
import { pause } from "../../lib/http.js";
import { effect, onEnd, signal } from "../../lib/signal.js";

/** What a fold of a long log costs the host is not small: a playhead that is dragged asks only where it rests. */
const REST = 90;
const MOST = 40;

/** @template T */
export class Past {
  /** @param {(seq: number, options: { signal: AbortSignal }) => Promise<T>} load @param {AbortSignal} ended */
  constructor(load, ended) {
    this.load = load;
    this.ended = ended;
    /** @private @type {Map<number, T>} the least recently wanted first */
    this.known = new Map();
    /** @private @type {Map<number, { promise: Promise<T>, waiting: number, abort: AbortController }>} */
    this.asked = new Map();
  }

  /** What is remembered, without asking. @param {number} seq @returns {T | undefined} */
  peek(seq) {
    return this.known.get(seq);
  }

  /** @param {number} seq @param {AbortSignal} [wanted] @returns {Promise<T>} */
  async get(seq, wanted) {
    const known = this.known.get(seq);
    if (known !== undefined) {
      this.known.delete(seq);
      this.known.set(seq, known);
      return known;
    }
    wanted?.throwIfAborted();
    const asked = this.asked.get(seq) ?? this.ask(seq);
    asked.waiting += 1;
    const leave = () => {
      asked.waiting -= 1;
      if (asked.waiting > 0) return;
      asked.abort.abort();
      this.forget(seq, asked); // Whoever comes next asks anew; this one will not be answered.
    };
    wanted?.addEventListener("abort", leave, { once: true });
    try {
      return await Promise.race([asked.promise, ...(wanted ? [rejected(wanted)] : [])]);
    } finally {
      wanted?.removeEventListener("abort", leave);
    }
  }

  /** @private @param {number} seq @param {object} asked */
  forget(seq, asked) {
    if (this.asked.get(seq) === asked) this.asked.delete(seq);
  }

  /** @private @param {number} seq */
  ask(seq) {
    const abort = new AbortController();
    const stop = () => abort.abort();
    this.ended.addEventListener("abort", stop, { once: true });
    const promise = this.load(seq, { signal: abort.signal }).then((value) => {
      this.known.set(seq, value);
      if (this.known.size > MOST) this.known.delete(/** @type {number} */ (this.known.keys().next().value));
      return value;
    });
    const asked = { promise, waiting: 0, abort };
    this.asked.set(seq, asked);
    promise.catch(() => {}).finally(() => {
      this.forget(seq, asked);
      this.ended.removeEventListener("abort", stop);
    });
    return asked;
  }

  /**
   * What is so as of a sequence that moves.
   * @param {import("../../lib/signal.js").Signal<number>} seq @param {() => boolean} [isThere] whether the log reaches there
   * @returns {import("../../lib/signal.js").Signal<import("./context.js").Loaded<T>>}
   */
  follow(seq, isThere = () => true) {
    const result = signal(/** @type {import("./context.js").Loaded<T>} */ ({ seq: -1, value: null, error: null, loading: true }));
    effect(() => {
      const at = seq.value;
      void recovered.value;
      if (at < 0 || !isThere()) return;
      const known = this.peek(at);
      if (known !== undefined) {
        result.value = { seq: at, value: known, error: null, loading: false };
        return;
      }
      const before = result.peek();
      if (!before.loading) result.value = { ...before, loading: true };
      const left = new AbortController();
      onEnd(() => left.abort());
      pause(before.value === null ? 0 : REST, left.signal)
        .then(() => this.get(at, left.signal))
        .then((value) => left.signal.aborted || (result.value = { seq: at, value, error: null, loading: false }))
        .catch((error) => isAbort(error) || left.signal.aborted || (result.value = { seq: at, value: null, error, loading: false }));
    });
    return result;
  }
}

/** @param {AbortSignal} signal @returns {Promise<never>} */
function rejected(signal) {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")), { once: true }));
}
