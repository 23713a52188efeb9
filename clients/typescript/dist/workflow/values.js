const WORD = /^[A-Za-z_][A-Za-z0-9_]*$/;
const TEXTS = /r?'(?:\\.|[^'\\])*'|r?"(?:\\.|[^"\\])*"/g;
const NODE = /(?<![A-Za-z0-9_.])nodes(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[\s*(?:'([^']*)'|"([^"]*)")\s*\])/g;
/** A variable of a workflow. In a template it is its CEL name: cel(`${price} * 2`). */
export class Variable {
    name;
    /** The workflow that has it. */
    owner;
    constructor(name, owner) {
        this.name = name;
        this.owner = owner;
    }
    toString() {
        return `variables${member(this.name)}`;
    }
}
/** An output of a step. In a template it is its CEL name. */
export class Output {
    node;
    key;
    optional;
    constructor(node, key, optional) {
        this.node = node;
        this.key = key;
        this.optional = optional;
    }
    toString() {
        return `nodes${member(this.node)}${member(this.key)}`;
    }
}
export class Expression {
    text;
    constructor(text) {
        this.text = text;
    }
    toString() {
        return this.text;
    }
}
/** A CEL expression. It may use `variables`, `inputs` and `nodes`. */
export function cel(text) {
    return new Expression(text);
}
/** What a step gives: `output("review", "action")`. */
export function output(node, key, { optional = false } = {}) {
    return new Output(node, key, optional);
}
/** The member of a configuration that takes a constant, or the one beside it that takes an expression. */
export function either(constant, expression, value) {
    return isComputed(value) ? { [expression]: String(value) } : { [constant]: value };
}
/** An entry of a node's `inputs`. */
export function source(value) {
    if (value instanceof Variable)
        return { type: "variable", variableName: value.name };
    if (value instanceof Output)
        return { type: "connection", nodeId: value.node, outputKey: value.key, ...(value.optional && { optional: true }) };
    if (value instanceof Expression)
        return { type: "expression", expression: value.text };
    return { type: "static", value };
}
/** The steps that a CEL expression names. Text constants do not count, but `nodes['a-b']` does. */
export function nodesNamed(text) {
    const bare = text.replace(TEXTS, (found, at) => (text.slice(0, at).trimEnd().endsWith("nodes[") ? found : "''"));
    return [...bare.matchAll(NODE)].map((found) => found[1] || found[2] || found[3] || "").filter((name) => name !== "");
}
function isComputed(value) {
    return value instanceof Expression || value instanceof Variable || value instanceof Output;
}
function member(name) {
    return WORD.test(name) ? `.${name}` : `['${name.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}']`;
}
