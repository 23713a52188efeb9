import type { Json } from "../api.js";
/** A variable of a workflow. In a template it is its CEL name: cel(`${price} * 2`). */
export declare class Variable<T = Json> {
    readonly name: string;
    /** The workflow that has it. */
    readonly owner: object;
    /** Only for the compiler. */
    readonly type: T;
    constructor(name: string, owner: object);
    toString(): string;
}
/** An output of a step. In a template it is its CEL name. */
export declare class Output {
    readonly node: string;
    readonly key: string;
    readonly optional: boolean;
    constructor(node: string, key: string, optional: boolean);
    toString(): string;
}
export declare class Expression {
    readonly text: string;
    constructor(text: string);
    toString(): string;
}
/** Where a value comes from. */
export type Computed = Expression | Variable<unknown> | Output;
/** A constant (any JSON), or where the value comes from. */
export type Value = Computed | Json;
export type Inputs = Record<string, Value>;
/** A CEL expression. It may use `variables`, `inputs` and `nodes`. */
export declare function cel(text: string): Expression;
/** What a step gives: `output("review", "action")`. */
export declare function output(node: string, key: string, { optional }?: {
    optional?: boolean;
}): Output;
/** The member of a configuration that takes a constant, or the one beside it that takes an expression. */
export declare function either(constant: string, expression: string, value: Value): Record<string, Json>;
/** An entry of a node's `inputs`. */
export declare function source(value: Value): Json;
/** The steps that a CEL expression names. Text constants do not count, but `nodes['a-b']` does. */
export declare function nodesNamed(text: string): string[];
