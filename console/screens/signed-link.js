// One question, opened by its signed link: no key, no account, nothing but this card. The link is the credential.
import { about } from "../components/question/about.js";
import { answerForm } from "../components/question/answer-form.js";
import { settledBy, settledNote } from "../components/question/settled.js";
import { empty, failed, loading } from "../components/states.js";
import { ago } from "../components/time.js";
import { api } from "../lib/api.js";
import { recovered } from "../lib/connection.js";
import { h } from "../lib/dom.js";
import { asApiError, isAbort } from "../lib/error.js";
import { statusWord } from "../lib/format.js";
import { effect } from "../lib/signal.js";
import { kindWord } from "./inbox/row.js";
import { titleOf } from "./run/answers.js";

/** @type {import("../types.js").Screen} */
export default {
  title: "A question",
  mount(root, params, context) {
    const token = params.token ?? "";
    const frame = (/** @type {import("../lib/dom.js").Child[]} */ ...content) => root.replaceChildren(h("div", { class: "link-page" }, ...content));
    const refused = (/** @type {unknown} */ error) => {
      const settled = settledBy(error);
      if (settled) return frame(h("article", { class: "q-card" }, h("h1", null, "This question has its answer"), settledNote(settled)));
      const { status } = asApiError(error);
      // Expired, mistyped or forged: the host does not say which, and nor do we.
      if ([400, 401, 403, 404, 410].includes(status)) return frame(empty("This link does not open a question.", "It may have expired: links live 30 minutes at most. Ask whoever sent it for a fresh one.", h("p", { class: "muted small" }, asApiError(error).message)));
      return frame(failed(error, load));
    };
    let [shown, done] = [false, false];
    const load = async () => {
      if (done) return;
      if (!shown) root.replaceChildren(loading(4));
      try {
        const question = await api.interrupts.byToken(token, { signal: context.signal });
        if (!shown) context.later(() => show(question));
      } catch (error) {
        // Our own answer says it better, and a host that is away again takes away nothing that was typed.
        if (!isAbort(error) && !done && !(shown && asApiError(error).passing)) refused(error);
      }
    };
    /** @param {import("../types.js").OpenInterrupt} open */
    const show = (open) => {
      shown = true;
      const question = { workflowId: "", ...open };
      context.setTitle(titleOf(question));
      const form = answerForm(question, {
        send: (value) => api.interrupts.resolveByToken(token, question, value),
        answered: (answer, status) => {
          const stays = answer.id === "ask" || (status === "waiting-approval" && (question.data?.requiredApprovals ?? 1) > 1);
          done = !stays;
          frame(h("article", { class: "q-card" }, h("h1", null, answer.id === "ask" ? "Your question is recorded" : stays ? "Your vote is counted" : "Answered"),
            h("p", null, stays ? "This one stays open until it is decided." : `“${titleOf(question)}”: ${answer.label.replace(/…$/, "").toLowerCase()}. The run is ${statusWord(status)}.`),
            stays ? h("button", { type: "button", onClick: () => (shown = false, void load()) }, "Show the question again") : h("p", { class: "muted" }, "You can close this page. The link is used up.")));
        },
        settled: (by) => frame(h("article", { class: "q-card" }, h("h1", null, titleOf(question)), settledNote(by))),
      });
      frame(h("article", { class: ["q-card", question.kind === "x-host-baton-effect-unknown" && "unknown"] },
        h("div", { class: "row q-top" }, h("span", { class: "tag" }, kindWord(question))),
        h("h1", null, titleOf(question)),
        h("dl", { class: "q-facts" },
          h("div", null, h("dt", null, "Asked"), h("dd", null, ago(question.requestedAt))),
          h("div", null, h("dt", null, "This link ends"), h("dd", null, ago(question.expiresAt))),
          h("div", null, h("dt", null, "Requested by"), h("dd", null, `node ${question.nodeId} of run `, h("span", { class: "mono" }, question.runId)))),
        about(question), form.element,
        h("p", { class: "muted small" }, "Whoever has this link can answer this one question, once, and nothing else.")));
    };
    effect(() => {
      void recovered.value;
      void load();
    });
  },
};
