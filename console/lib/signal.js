// Values that tell who reads them. An effect runs again when something it read has changed; effects made inside an
// effect or a scope end with it, so whoever unmounts a screen ends everything that screen started.

/** @type {Effect | null} */
let reader = null;
/** @type {Owner | null} */
let owner = null;
/** @type {Set<Effect> | null} */
let waiting = null;

/** Something that ends, and what must end with it. */
class Owner {
  /** @type {(() => void)[]} */
  ends = [];

  constructor() {
    owner?.ends.push(() => this.end());
  }

  end() {
    const ends = this.ends;
    this.ends = [];
    for (let i = ends.length - 1; i >= 0; i -= 1) ends[i]?.();
  }

  /** @template T @param {() => T} work @returns {T} */
  run(work) {
    const [outerOwner, outerReader] = [owner, reader];
    owner = this;
    reader = null;
    try {
      return work();
    } finally {
      owner = outerOwner;
      reader = outerReader;
    }
  }
}

class Effect extends Owner {
  /** @param {() => void} work */
  constructor(work) {
    super();
    this.work = work;
    /** @type {Set<Set<Effect>>} */
    this.reads = new Set();
    this.ended = false;
    this.go();
  }

  go() {
    if (this.ended) return;
    super.end();
    this.forget();
    const [outerOwner, outerReader] = [owner, reader];
    owner = this;
    reader = this;
    try {
      this.work();
    } finally {
      owner = outerOwner;
      reader = outerReader;
    }
  }

  forget() {
    for (const readers of this.reads) readers.delete(this);
    this.reads.clear();
  }

  end() {
    this.ended = true;
    this.forget();
    super.end();
  }
}

/** @template T */
export class Signal {
  /** @param {T} value */
  constructor(value) {
    /** @private */
    this.held = value;
    /** @private @type {Set<Effect>} */
    this.readers = new Set();
  }

  /** The value; whoever reads it here is told when it changes. */
  get value() {
    if (reader) {
      this.readers.add(reader);
      reader.reads.add(this.readers);
    }
    return this.held;
  }

  set value(next) {
    if (Object.is(next, this.held)) return;
    this.held = next;
    batch(() => {
      for (const effect of this.readers) waiting?.add(effect);
    });
  }

  /** The value, without being told of changes. */
  peek() {
    return this.held;
  }

  /** @param {(value: T) => T} change */
  update(change) {
    this.value = change(this.held);
  }
}

/** @template T @param {T} value @returns {Signal<T>} */
export function signal(value) {
  return new Signal(value);
}

/** A value that follows from others. @template T @param {() => T} derive @returns {Signal<T>} */
export function computed(derive) {
  const result = signal(untracked(derive));
  effect(() => {
    result.value = derive();
  });
  return result;
}

/** Runs now and whenever what it read has changed. @param {() => void} work @returns {() => void} ends it */
export function effect(work) {
  const made = new Effect(work);
  return () => made.end();
}

/** Several changes, told once. @template T @param {() => T} work @returns {T} */
export function batch(work) {
  if (waiting) return work();
  waiting = new Set();
  try {
    return work();
  } finally {
    // What an effect changes may concern another: go on until nobody waits. A circle is a bug; it must not hang a page.
    for (let round = 0; waiting.size > 0 && round < 100; round += 1) {
      const now = [...waiting];
      waiting.clear();
      for (const one of now) one.go();
    }
    waiting = null;
  }
}

/** @template T @param {() => T} work @returns {T} */
export function untracked(work) {
  const outer = reader;
  reader = null;
  try {
    return work();
  } finally {
    reader = outer;
  }
}

/** Calls `end` when the effect or scope around ends. @param {() => void} end */
export function onEnd(end) {
  owner?.ends.push(end);
}

/**
 * A place for effects that end together. `run` puts later work, such as what comes of a fetch, into it.
 * @returns {{ run<T>(work: () => T): T, end(): void }}
 */
export function scope() {
  const made = new Owner();
  return { run: (work) => made.run(work), end: () => made.end() };
}
