import { Group } from "./group.js";
import { change, get } from "./http.js";
export class Interrupts extends Group {
    /** Open questions: 50 of them, or `limit` (up to 200). */
    async list({ runId, kind, limit, ...call } = {}) {
        return (await this.connection.send(get(["v1", "interrupts"], { runId, kind, limit }), call)).interrupts;
    }
    /**
     * Answers a question of a node. A second answer throws AlreadyAnswered. Name the question with `interruptId` if the
     * node may ask more than one.
     */
    answer(runId, nodeId, resumeValue, { interruptId, idempotencyKey, ...call } = {}) {
        const asked = change("POST", ["v1", "runs", runId, "interrupts", nodeId], { interruptId, resumeValue }, { key: idempotencyKey });
        return this.connection.send(asked, call);
    }
    /** Accepts what an approval asks for. `voter` is who decided, if it is not the key itself. */
    approve(question, { feedback, voter, ...call } = {}) {
        return this.#to(question, { action: "accept", feedback, voter }, call);
    }
    reject(question, { feedback, voter, ...call } = {}) {
        return this.#to(question, { action: "reject", feedback, voter }, call);
    }
    /** Answers a clarification: a value for the id of each of its questions. */
    reply(question, answers, call = {}) {
        return this.#to(question, { answers }, call);
    }
    /** The question behind a signed link. Needs no key. */
    inspectLink(token, call) {
        return this.connection.send(get(["v1", "interrupts", token]), call);
    }
    answerLink(token, resumeValue, call) {
        return this.connection.send(change("POST", ["v1", "interrupts", token], { resumeValue }), call);
    }
    #to(question, value, call) {
        const asked = "interruptId" in question ? question : question.interrupt;
        if (asked === undefined)
            throw new TypeError(`${question.runId} asks nothing: it is ${question.status}`);
        return this.answer(question.runId, asked.nodeId, value, { ...call, interruptId: asked.interruptId });
    }
}
