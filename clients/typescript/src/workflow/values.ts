// Where the values of steps come from: a constant, a variable, another step's output, or a CEL expression.
import type { Json } from "../api.js";

const WORD = /^[A-Za-z_][A-Za-z0-9_]*$/;
const TEXTS = /r?'(?:\\.|[^'\\])*'|r?"(?:\\.|[^"\\])*"/g;
const NODE = /(?<![A-Za-z0-9_.])nodes(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[\s*(?:'([^']*)'|"([^"]*)")\s*\])/g;

/** A variable of a workflow. In a template it is its CEL name: cel(`${price} * 2`). */
export class Variable<T = Json> {
  readonly name: string;
  /** The workflow that has it. */
  readonly owner: object;
  /** Only for the compiler. */
  declare readonly type: T;

  constructor(name: string, owner: object) {
    this.name = name;
    this.owner = owner;
  }

  toString(): string {
    return `variables${member(this.name)}`;
  }
}

/** An output of a step. In a template it is its CEL name. */
export class Output {
  readonly node: string;
  readonly key: string;
  readonly optional: boolean;

  constructor(node: string, key: string, optional: boolean) {
    this.node = node;
    this.key = key;
    this.optional = optional;
  }

  toString(): string {
    return `nodes${member(this.node)}${member(this.key)}`;
  }
}

export class Expression {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }
}

/** Where a value comes from. */
export type Computed = Expression | Variable<unknown> | Output;
/** A constant (any JSON), or where the value comes from. */
export type Value = Computed | Json;
export type Inputs = Record<string, Value>;

/** A CEL expression. It may use `variables`, `inputs` and `nodes`. */
export function cel(text: string): Expression {
  return new Expression(text);
}

/** What a step gives: `output("review", "action")`. */
export function output(node: string, key: string, { optional = false }: { optional?: boolean } = {}): Output {
  return new Output(node, key, optional);
}

/** The member of a configuration that takes a constant, or the one beside it that takes an expression. */
export function either(constant: string, expression: string, value: Value): Record<string, Json> {
  return isComputed(value) ? { [expression]: String(value) } : { [constant]: value };
}

/** An entry of a node's `inputs`. */
export function source(value: Value): Json {
  if (value instanceof Variable) return { type: "variable", variableName: value.name };
  if (value instanceof Output) return { type: "connection", nodeId: value.node, outputKey: value.key, ...(value.optional && { optional: true }) };
  if (value instanceof Expression) return { type: "expression", expression: value.text };
  return { type: "static", value };
}

/** The steps that a CEL expression names. Text constants do not count, but `nodes['a-b']` does. */
export function nodesNamed(text: string): string[] {
  const bare = text.replace(TEXTS, (found, at: number) => (text.slice(0, at).trimEnd().endsWith("nodes[") ? found : "''"));
  return [...bare.matchAll(NODE)].map((found) => found[1] || found[2] || found[3] || "").filter((name) => name !== "");
}

function isComputed(value: Value): boolean {
  return value instanceof Expression || value instanceof Variable || value instanceof Output;
}

function member(name: string): string {
  return WORD.test(name) ? `.${name}` : `['${name.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}']`;
}
