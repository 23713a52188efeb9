// Questions that runs wait for, and their answers.
import type { Answered, InterruptItem, Json, OpenInterrupt, RunSnapshot } from "./api.js";
import { Group } from "./group.js";
import { type CallOptions, change, get } from "./http.js";

/** An item of `interrupts.list`, or a run that waits. */
export type Question = InterruptItem | RunSnapshot;

export class Interrupts extends Group {
  /** Open questions: 50 of them, or `limit` (up to 200). */
  async list({ runId, kind, limit, ...call }: CallOptions & { runId?: string; kind?: string; limit?: number } = {}): Promise<InterruptItem[]> {
    return (await this.connection.send<{ interrupts: InterruptItem[] }>(get(["v1", "interrupts"], { runId, kind, limit }), call)).interrupts;
  }

  /**
   * Answers a question of a node. A second answer throws AlreadyAnswered. Name the question with `interruptId` if the
   * node may ask more than one.
   */
  answer(
    runId: string,
    nodeId: string,
    resumeValue: Record<string, Json>,
    { interruptId, idempotencyKey, ...call }: CallOptions & { interruptId?: string; idempotencyKey?: string } = {},
  ): Promise<Answered> {
    const asked = change("POST", ["v1", "runs", runId, "interrupts", nodeId], { interruptId, resumeValue }, { key: idempotencyKey });
    return this.connection.send(asked, call);
  }

  /** Accepts what an approval asks for. `voter` is who decided, if it is not the key itself. */
  approve(question: Question, { feedback, voter, ...call }: CallOptions & { feedback?: string; voter?: string } = {}): Promise<Answered> {
    return this.#to(question, { action: "accept", feedback, voter }, call);
  }

  reject(question: Question, { feedback, voter, ...call }: CallOptions & { feedback?: string; voter?: string } = {}): Promise<Answered> {
    return this.#to(question, { action: "reject", feedback, voter }, call);
  }

  /** Answers a clarification: a value for the id of each of its questions. */
  reply(question: Question, answers: Record<string, Json>, call: CallOptions = {}): Promise<Answered> {
    return this.#to(question, { answers }, call);
  }

  /** The question behind a signed link. Needs no key. */
  inspectLink(token: string, call?: CallOptions): Promise<OpenInterrupt> {
    return this.connection.send(get(["v1", "interrupts", token]), call);
  }

  answerLink(token: string, resumeValue: Record<string, Json>, call?: CallOptions): Promise<Answered> {
    return this.connection.send(change("POST", ["v1", "interrupts", token], { resumeValue }), call);
  }

  #to(question: Question, value: Record<string, Json>, call: CallOptions): Promise<Answered> {
    const asked = "interruptId" in question ? question : question.interrupt;
    if (asked === undefined) throw new TypeError(`${question.runId} asks nothing: it is ${(question as RunSnapshot).status}`);
    return this.answer(question.runId, asked.nodeId, value, { ...call, interruptId: asked.interruptId });
  }
}
