// Steps one after the other. Each method adds steps behind a chain and gives the longer chain; the old one stays usable.
import type { Json } from "../api.js";
import { Graph, type Place } from "./graph.js";
import { type Decision, given, type Name, nameOf, Node, node, type Rule } from "./nodes.js";
import { BuildError } from "./problems.js";
import { either, type Inputs, type Value } from "./values.js";

/** Adds the steps of one way and gives its end. */
export type Arm = (way: Chain) => Chain;

export interface StepOptions {
  inputs?: Inputs;
  name?: string;
  timeoutMs?: number;
  retries?: number;
  retryDelayMs?: number;
  /** Its outputs are the run's, if no way has an end. */
  primary?: boolean;
  /** The way that a failure takes instead of failing the run. */
  onFailure?: Arm;
}

export interface ApproveOptions {
  title?: string;
  description?: string;
  artifact?: Value;
  actions?: ("accept" | "reject" | "refine" | "edit-accept" | "ask")[];
  requiredApprovals?: number;
  rejectionPolicy?: "single-veto" | "majority";
  approvers?: string[];
  timeoutMs?: number;
  /** Without it a rejection fails the run. */
  onReject?: Arm;
  onRefine?: Arm;
  name?: string;
}

export interface LoopOptions {
  items?: Value;
  count?: number;
  while?: Value;
  into?: Name;
  maxIterations?: number;
  name?: string;
}

export interface MapOptions {
  items?: Value;
  tool?: string;
  arguments?: Value;
  agent?: string;
  task?: Value;
  workflow?: string;
  workflowInputs?: Value;
  /** The workflow's variable that is its result. */
  output?: string;
  itemName?: string;
  maxConcurrency?: number;
  onItemError?: "fail" | "collect";
  itemTimeoutMs?: number;
  into?: Name;
  /** Other settings of the guide. */
  [setting: string]: Json | Value;
}

export interface SuperviseOptions {
  rules?: Rule[];
  otherwise?: Decision;
  agentId?: string;
  workers?: { id: string; for: string }[];
  inputs?: Inputs;
  /** The id of the node that carries decisions out (`hand-over`). */
  dispatch?: string;
  inputMapping?: Record<string, string>;
  outputMapping?: Record<string, string>;
  iterationCap?: number;
  fanOut?: "sequential" | "parallel" | "reject";
  maxConcurrency?: number;
  join?: Record<string, Json>;
  onChildFailure?: "collect" | "absorb" | "fail-fast";
  outputAttestation?: Record<string, Json>;
  settings?: Record<string, Json>;
}

export class Chain {
  protected readonly graph: Graph;
  /** Where the next step is attached. */
  protected readonly ends: Place[];
  /** The next step starts with the run. */
  readonly #begins: boolean;

  constructor(graph: Graph, ends: Place[], begins = false) {
    this.graph = graph;
    this.ends = ends;
    this.#begins = begins;
  }

  get isEnded(): boolean {
    return this.ends.length === 0 && !this.#begins;
  }

  /** A step of any type. */
  step(id: string, does: Node | string, { inputs, name, timeoutMs, retries, retryDelayMs, primary, onFailure }: StepOptions = {}): Chain {
    const { typeId, config } = typeof does === "string" ? node(does) : does;
    const settings = given({ timeout: timeoutMs, maxRetries: retries, retryDelayMs });
    const other = { ...(Object.keys(settings).length > 0 && { settings }), ...(primary && { outputRole: "primary" }) };
    const place = this.#add(id, typeId, { ...config }, { inputs, name, other });
    if (onFailure === undefined) return this.#at(place);
    const failed = this.#way({ ...place, rule: "any_failed" }, onFailure);
    if (failed.ends[0]?.node === id) throw new BuildError(`onFailure of "${id}" adds no step`);
    return this.#join(id, [this.#at(place), failed], "any_success");
  }

  /** Waits for approval. */
  approve(id: string, options: ApproveOptions = {}): Chain {
    const { title, description, artifact, requiredApprovals, rejectionPolicy, approvers, timeoutMs, onReject, onRefine, name } = options;
    const actions = options.actions ?? (onRefine && ["accept", "reject", "refine"]);
    const config = given({ title, description, actions, requiredApprovals, rejectionPolicy, approversList: approvers, timeoutMs });
    const place = this.#add(id, "core.approvalGate", config, { inputs: artifact === undefined ? undefined : { artifact }, name });
    const ways = [this.#at(place)];
    if (onReject) ways.push(this.#way({ ...place, port: "reject" }, onReject));
    if (onRefine) ways.push(this.#way({ ...place, port: "refine" }, onRefine));
    return this.#join(id, ways, "any_success");
  }

  /** Waits for the answers to questions, by id. They are `output(id, "answers")`. */
  ask(id: string, questions: Record<string, string>, { timeoutMs, name }: { timeoutMs?: number; name?: string } = {}): Chain {
    const asked = Object.entries(questions).map(([key, question]) => ({ id: key, question }));
    return this.#at(this.#add(id, "core.clarificationGate", given({ questions: asked, timeoutMs }), { name }));
  }

  /** Waits for an event of another system with these values. It is `output(id, "event")`. */
  waitForEvent(id: string, eventType: string, correlation: Record<string, Json>, { timeoutMs, name }: { timeoutMs?: number; name?: string } = {}): Chain {
    const config = given({ kind: "external-event", data: { eventType, correlation }, timeoutMs });
    return this.#at(this.#add(id, "core.interrupt", config, { name }));
  }

  /** Takes one of two ways. What follows comes after whichever was taken. */
  branch(id: string, when: Value, { then, otherwise = (way) => way, name }: { then: Arm; otherwise?: Arm; name?: string }): Chain {
    const place = this.#add(id, "core.conditional", { expression: String(when) }, { name });
    return this.#join(id, [this.#way({ ...place, port: "true" }, then), this.#way({ ...place, port: "false" }, otherwise)], "any_success");
  }

  /** Takes all ways at once. What follows comes after all of them. */
  parallel(id: string, ...ways: Arm[]): Chain {
    const place = this.#add(id, "core.parallel", {}, {});
    return this.#join(id, ways.map((way) => this.#way(place, way)));
  }

  /** Repeats its body: for each of `items`, `count` times, or `while` something is true. */
  loop(id: string, options: LoopOptions, body: Arm): Chain {
    const { items, count, into, maxIterations, name } = options;
    if ([items, count, options.while].filter((one) => one !== undefined).length !== 1) throw new BuildError(`the loop "${id}" needs one of items, count and while`);
    const text = (value: Value | undefined) => (value === undefined ? undefined : String(value));
    const config = given({ items: text(items), count, into: nameOf(into), maxIterations, while: text(options.while) });
    const place = this.#add(id, "core.loop", config, { name });
    for (const end of this.#way({ ...place, port: "body" }, body).ends) {
      if (end.node === id) throw new BuildError(`the body of the loop "${id}" adds no step`);
      this.graph.addEdge(end, id);
    }
    return this.#at({ ...place, port: "done" });
  }

  /**
   * Calls a tool, an agent or a workflow for each item of a list, several at a time. Expressions of `arguments`, `task` and
   * `workflowInputs` know the item as `item`, and as `itemName`; without them each item is given as it is. The output
   * `results` has the results in order.
   */
  map(id: string, options: MapOptions, more: { inputs?: Inputs; name?: string } = {}): Chain {
    const { items, arguments: args, task, workflowInputs, itemName, into, ...rest } = options;
    if ([rest.tool, rest.agent, rest.workflow].filter((one) => one !== undefined).length !== 1) throw new BuildError(`the map "${id}" needs one of tool, agent and workflow`);
    const said = { items, arguments: args, task, inputs: workflowInputs };
    const config = Object.entries(said).map(([key, value]) => (value === undefined ? {} : either(key, `${key}Expression`, value)));
    return this.step(id, node("vendor.baton.map", Object.assign({ ...rest, ...given({ as: itemName, into: nameOf(into) }) }, ...config)), more);
  }

  /**
   * A supervisor, by rules or by an agent, and the node that carries out its decisions. Nothing follows it: a decision to
   * terminate completes the run.
   */
  supervise(id: string, options: SuperviseOptions): Chain {
    const { rules, otherwise, agentId, workers, inputs, dispatch = "hand-over", settings } = options;
    if ((rules === undefined) === (agentId === undefined)) throw new BuildError(`the supervisor "${id}" needs either rules or agentId`);
    const lead = this.#add(id, "core.orchestrator.supervisor", { ...given({ rules, otherwise, agentId, workers }), ...settings }, { inputs });
    const { inputMapping, outputMapping, iterationCap, fanOut, maxConcurrency, join, onChildFailure, outputAttestation } = options;
    const config = given({ inputMapping, outputMapping, iterationCap, fanOutPolicy: fanOut, maxConcurrency, joinPolicy: join, onChildFailure, outputAttestation });
    this.graph.addEdge(this.graph.addNode(dispatch, "core.dispatch", config, [lead]), id);
    return new Chain(this.graph, []);
  }

  /** Fails the run. Nothing follows. */
  fail(id: string, code: string, message: string): Chain {
    this.#add(id, "core.fail", { code, message }, {});
    return new Chain(this.graph, []);
  }

  /** Ends this way. The outputs are the run's. Nothing follows. */
  end(id = "end", outputs: Inputs = {}): Chain {
    this.#add(id, "core.end", {}, { inputs: outputs });
    return new Chain(this.graph, []);
  }

  /** Where chains of one workflow end. */
  protected static endsOf(graph: Graph, chains: Chain[], rule: string | undefined): Place[] {
    if (chains.length === 0 || chains.some((chain) => chain.graph !== graph || chain.ends.length === 0)) {
      throw new BuildError("only chains of this workflow that have not ended can be joined");
    }
    return chains.flatMap((chain) => chain.ends).map((end) => ({ ...end, rule: end.rule ?? rule }));
  }

  #add(id: string, typeId: string, config: Record<string, Json>, more: { inputs?: Inputs | undefined; name?: string | undefined; other?: Record<string, Json> }): Place {
    if (this.isEnded) throw new BuildError(`nothing can follow here, but the step "${id}" does`);
    return this.graph.addNode(id, typeId, config, this.ends, more);
  }

  #at(place: Place): Chain {
    return new Chain(this.graph, [place]);
  }

  #way(place: Place, arm: Arm): Chain {
    const way: unknown = arm(this.#at(place));
    if (!(way instanceof Chain) || way.graph !== this.graph) throw new BuildError(`a way behind "${place.node}" must give back the chain it was given, with its steps added`);
    return way;
  }

  /** What follows all ways that have not ended: with several of them behind a node that joins them. */
  #join(id: string, ways: Chain[], rule?: "any_success"): Chain {
    const open = ways.flatMap((way) => way.ends);
    if (open.length < 2) return new Chain(this.graph, open);
    return this.#at(this.graph.addNode(`${id}-join`, "core.merge", {}, open.map((end) => ({ ...end, rule }))));
  }
}
