// The honest page: what this host says it can do, how it fares, what it keeps, what it refused to guess. Asked again gently.
import { copyMenu } from "../components/copy-menu.js";
import { lines } from "../components/asked-view.js";
import { failed } from "../components/states.js";
import { ago, elapsed } from "../components/time.js";
import { api } from "../lib/api.js";
import { reach, recovered } from "../lib/connection.js";
import { h } from "../lib/dom.js";
import { asApiError, isAbort } from "../lib/error.js";
import { computed, effect, onEnd, signal } from "../lib/signal.js";
import { connectionsCard } from "./system/connections.js";
import { discoveryCard } from "./system/discovery.js";
import { buildCard, healthCard, limitsCard, recoveryCard, runsCard } from "./system/facts.js";
import { logCard } from "./system/logs.js";
import { runnersCard } from "./system/runners.js";
import { storageCard } from "./system/storage.js";
import { webhooksCard } from "./system/webhooks.js";

/** @typedef {import("../types.js").SystemReport} SystemReport */
const EVERY = 5000;

/** @type {import("../types.js").Screen} */
export default {
  title: "System",
  mount(root, _params, context) {
    const report = signal(/** @type {SystemReport | null} */ (null));
    const ready = signal(/** @type {import("./system/facts.js").Readiness | null} */ (null));
    const problem = signal(/** @type {unknown} */ (null));
    const discovery = signal(/** @type {any} */ (null));
    const webhooks = signal(/** @type {import("../types.js").WebhookList | null} */ (null));
    // A key that may not see them gets no card.
    const askWebhooks = () => api.webhooks.list({ limit: 200 }, { signal: context.signal }).then((list) => (webhooks.value = list)).catch(() => {});
    const runners = signal(/** @type {{ runners: import("../types.js").Runner[] } | null} */ (null));
    const askRunners = () => api.host.runners({ signal: context.signal }).then((list) => (runners.value = list)).catch(() => {});
    /** @type {SystemReport | null} */
    let first = null;
    let asking = false;
    const ask = async () => {
      if (asking) return; // A slow host is not asked a second time meanwhile.
      asking = true;
      // What was shown stays while the host is away; the banner says that it is.
      const began = performance.now();
      try {
        const readiness = api.host.readiness({ signal: context.signal }).then(() => ({ ok: true, text: "ready" })).catch((error) => {
          if (isAbort(error)) throw error;
          return { ok: false, text: asApiError(error).message };
        });
        // Both at once, so that neither is left alone with its failure when the screen goes.
        const [said, now] = await Promise.all([readiness, api.host.system({ signal: context.signal })]);
        first ??= now;
        ready.value = { ...said, took: performance.now() - began };
        report.value = now;
        problem.value = null;
      } catch (error) {
        if (!isAbort(error)) problem.value = error;
      }
      asking = false;
    };
    effect(() => {
      void recovered.value;
      void ask();
      void askWebhooks();
      void askRunners();
      api.host.discovery({ signal: context.signal }).then((document) => (discovery.value = document)).catch(() => {});
    });
    const timer = setInterval(() => !document.hidden && reach.peek() === "online" && (void ask(), void askRunners()), EVERY);
    onEnd(() => clearInterval(timer));

    /** A part of the report that is drawn anew only when it changed. @template T @param {(report: SystemReport) => T} pick @param {(part: T) => import("../lib/dom.js").Child} draw */
    const part = (pick, draw) => {
      const text = computed(() => (report.value ? JSON.stringify(pick(report.value)) ?? "null" : ""));
      return () => text.value !== "" && draw(JSON.parse(text.value));
    };
    root.append(h("div", { class: "page system" },
      h("div", { class: "page-head" }, h("h1", null, "System"),
        part((now) => [now.version, now.build, now.startedAt], ([version, build, startedAt = ""]) => h("span", { class: "muted row wrap" }, h("span", null, `Baton ${version}${build === "debug" ? ", debug build" : ""}`), h("span", null, "up for ", elapsed(startedAt), ", started ", ago(startedAt)))),
        h("span", { class: "push" }, copyMenu(() => ({ request: { path: "/v1/host/baton/system" }, json: () => report.peek() })))),
      () => (problem.value !== null && report.value === null ? failed(problem.value, ask) : report.value === null ? lines() : null),
      h("div", { class: "sys-grid" },
        h("div", { class: "stack" },
          () => ready.value && part((now) => ({ ready: now.ready, trouble: now.operator?.trouble, open: now.openInterrupts, unknown: now.operator?.unknownCalls ?? null }), (state) => healthCard(ready.value, state)),
          part((now) => now.runs, runsCard),
          part((now) => (now.operator ? { recovery: now.operator.recovery, unknownCalls: now.operator.unknownCalls, generation: now.operator.generation } : null), recoveryCard)),
        h("div", { class: "stack" }, part((now) => (now.operator ? { storage: now.operator.storage, startedAt: now.startedAt, now: now.now.slice(0, 16) } : null), (kept) => storageCard(kept, first))),
        h("div", { class: "stack" }, part((now) => now.limits, limitsCard),
          part((now) => [now.version, now.build, now.licence, now.hostId, now.instance], (told) => buildCard(told)))),
      part((now) => now.operator?.connections ?? null, connectionsCard),
      () => runnersCard(runners.value),
      () => webhooksCard(webhooks.value, askWebhooks),
      part((now) => now.operator?.logs ?? null, logCard),
      () => discovery.value && discoveryCard(discovery.value),
      h("p", { class: "muted small sys-not" }, h("strong", null, "Not in the console: "), "a builder to draw workflows with, a chat product, a customer database. Workflows are files; what the console does, the API and the ", h("code", null, "baton"), " command do too.")));
  },
};
