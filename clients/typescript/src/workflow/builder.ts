// Workflows as plain code: `new Workflow("order").step(...).approve(...)` makes the JSON definition.
import type { Json } from "../api.js";
import type { Client } from "../client.js";
import { Chain } from "./chain.js";
import { Graph, type Part } from "./graph.js";
import { given } from "./nodes.js";
import { caller } from "./problems.js";
import { Variable } from "./values.js";

export interface WorkflowOptions {
  name?: string;
  /** Your own version text (`1.0.0`). */
  version?: string;
  description?: string;
  settings?: Record<string, Json>;
  metadata?: Record<string, Json>;
  configurableSchema?: Record<string, Json>;
}

/** What a variable of each type holds. */
export interface Types {
  string: string;
  number: number;
  boolean: boolean;
  object: Record<string, Json>;
  array: Json[];
}

/** The type of a variable that holds a `T`. */
export type KindOf<T> = T extends string ? "string" : T extends number ? "number" : T extends boolean ? "boolean" : T extends readonly unknown[] ? "array" : "object";

export interface VariableOptions {
  description?: string;
  sensitive?: boolean;
}

/**
 * Each chain that begins at the workflow itself starts with the run; several of them run in parallel. With a type for its
 * inputs, `new Workflow<{ amount: number }>("order")`, the compiler checks them wherever a run is started.
 */
export class Workflow<I extends Record<string, Json> = Record<string, Json>> extends Chain {
  /** Only for the compiler. */
  declare readonly inputs: I;
  readonly id: string;
  readonly #head: Record<string, Json>;
  readonly #tail: Record<string, Json>;

  constructor(id: string, { name, version = "1.0.0", description, settings = {}, metadata = {}, configurableSchema }: WorkflowOptions = {}) {
    super(new Graph(id, caller()), [], true);
    this.id = id;
    this.#head = given({ id, name: name ?? id, description, version });
    this.#tail = given({ metadata, settings, configurableSchema });
  }

  /** A variable that whoever starts a run must give. */
  input<N extends keyof I & string, K extends KindOf<I[N]>>(name: N, type: K, { description, sensitive }: VariableOptions = {}): Variable<Types[K]> {
    return this.graph.addVariable(name, type, given({ required: true, description, sensitive: sensitive || undefined }));
  }

  /** A variable that may be given, and that steps may set. */
  variable<K extends keyof Types>(name: string, type: K, defaultValue?: Types[K], { description, sensitive }: VariableOptions = {}): Variable<Types[K]> {
    return this.graph.addVariable(name, type, given({ defaultValue, description, sensitive: sensitive || undefined }));
  }

  /** A value that changes by a rule. It is read like a variable. */
  channel(
    name: string,
    reducer: "replace" | "append" | "feedback" | "message" | "votes" | "merge" | "counter" = "replace",
    { default: first, maxSize, ...more }: { default?: Json; maxSize?: number; [setting: string]: Json } = {},
  ): Variable {
    this.graph.checkFree(name, caller());
    this.graph.channels[name] = { reducer, ...given({ default: first, maxSize }), ...more };
    return new Variable(name, this.graph);
  }

  /** Continues after several chains that were built apart. */
  join(id: string, chains: Chain[], rule: "all_success" | "any_success" | "all_complete" | "none_failed" | "any_failed" = "all_success"): Chain {
    const ends = Chain.endsOf(this.graph, chains, rule === "all_success" ? undefined : rule);
    return new Chain(this.graph, [this.graph.addNode(id, "core.merge", {}, ends)]);
  }

  /** The definition that `workflows.register` takes. Throws BuildError for a step that is named and not there. */
  definition(): Record<string, Json> {
    return this.graph.document(this.#head, this.#tail);
  }

  /** The same as a file for `baton workflow validate` and for folders of workflows. */
  toJson(): string {
    return `${JSON.stringify(this.definition(), null, 2)}\n`;
  }

  /** Asks the host. Throws InvalidWorkflow with each problem at the line that built that part. */
  check(client: Client): Promise<void> {
    return client.workflows.check(this);
  }

  /** What a JSON pointer into the definition points at, and the line that built it. */
  partAt(pointer: string): Part {
    return this.graph.partAt(pointer);
  }
}
