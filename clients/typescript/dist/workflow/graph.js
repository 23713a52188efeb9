import { BuildError, caller, said } from "./problems.js";
import { nodesNamed, Output, source, Variable } from "./values.js";
/** Distances between nodes in a drawing. */
const COLUMN = 220;
const ROW = 120;
const ID = /^[a-z][a-z0-9_-]{0,127}$/;
/** Members of a configuration that hold CEL. */
const EXPRESSIONS = ["expression", "condition", "while", "items", "when", "assign"];
const KINDS = ["string", "number", "boolean", "object", "array"];
/** Nodes, edges and variables in the order in which they were made: the same program gives the same bytes. */
export class Graph {
    id;
    site;
    nodes = [];
    edges = [];
    variables = [];
    channels = {};
    #parts = { nodes: [], edges: [], variables: [] };
    #references = [];
    #ids = new Map();
    #edgeIds = new Set();
    #rows = new Map();
    constructor(id, site) {
        if (!ID.test(id))
            throw new BuildError(`"${id}" cannot be the id of a workflow: a lowercase letter, then a-z 0-9 _ -`, site);
        this.id = id;
        this.site = site;
    }
    addNode(id, typeId, config, after, more = {}) {
        const site = caller();
        if (!id)
            throw new BuildError("a step needs an id", site);
        const kept = this.#parts.nodes[this.#ids.get(id) ?? -1];
        if (kept !== undefined)
            throw new BuildError(`there is a ${kept.part} already, from ${said(kept.site)}`, site);
        const inputs = more.inputs ?? {};
        for (const value of Object.values(inputs))
            this.#own(value, site);
        const column = Math.max(0, ...after.map((place) => place.column + 1));
        const row = this.#rows.get(column) ?? 0;
        this.#rows.set(column, row + 1);
        const words = id.replaceAll("-", " ").replaceAll("_", " ").toLowerCase();
        const made = {
            id,
            typeId,
            name: more.name || words.charAt(0).toUpperCase() + words.slice(1),
            position: { x: column * COLUMN, y: row * ROW },
            config,
            inputs: Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, source(value)])),
            ...more.other,
        };
        this.#ids.set(id, this.nodes.length);
        this.nodes.push(made);
        this.#parts.nodes.push({ part: `step "${id}"`, site });
        this.#refer([config, made.inputs], site, false);
        for (const place of after)
            this.addEdge(place, id);
        return { node: id, column };
    }
    addEdge({ node, port, rule }, target) {
        const ends = [node, target, ...(port ? [port] : []), ...(rule === "any_failed" ? ["failed"] : [])];
        let name = ends.join("-");
        // "a-b" to "c" and "a" to "b-c" read the same.
        for (let number = 2; this.#edgeIds.has(name); number += 1)
            name = [...ends, number].join("-");
        this.#edgeIds.add(name);
        this.edges.push({ id: name, sourceNodeId: node, targetNodeId: target, ...(port && { sourceOutput: port }), ...(rule && { triggerRule: rule }) });
        this.#parts.edges.push({ part: `the way from "${node}" to "${target}"`, site: caller() });
    }
    addVariable(name, type, more) {
        const site = caller();
        this.checkFree(name, site);
        if (!KINDS.includes(type))
            throw new BuildError(`"${type}" is no type of a variable: use ${KINDS.join(", ")}`, site);
        this.variables.push({ name, type, ...more });
        this.#parts.variables.push({ part: `variable "${name}"`, site });
        return new Variable(name, this);
    }
    checkFree(name, site) {
        if (this.variables.some((kept) => kept.name === name) || Object.hasOwn(this.channels, name))
            throw new BuildError(`there is a variable "${name}" already`, site);
    }
    /** The definition, with its members in a fixed order. */
    document(head, tail) {
        if (this.nodes.length === 0)
            throw new BuildError(`the workflow "${this.id}" has no step`, this.site);
        for (const { node, site } of this.#references) {
            if (!this.#ids.has(node))
                throw new BuildError(`there is no step "${node}"`, site);
        }
        return structuredClone({
            ...head,
            nodes: this.nodes,
            edges: this.edges,
            triggers: [{ id: "manual", type: "manual" }],
            variables: this.variables,
            ...(Object.keys(this.channels).length > 0 && { channels: this.channels }),
            ...tail,
        });
    }
    /** What was built at a JSON pointer, and by which line. */
    partAt(pointer) {
        const [, kind, index] = pointer.split("/");
        const parts = Object.hasOwn(this.#parts, kind ?? "") ? this.#parts[kind] : [];
        return parts[/^\d+$/.test(index ?? "") ? Number(index) : -1] ?? { part: "the workflow", site: this.site };
    }
    #own(value, site) {
        if (value instanceof Variable && value.owner !== this)
            throw new BuildError(`the variable "${value.name}" is one of another workflow`, site);
        if (value instanceof Output)
            this.#references.push({ node: value.node, site });
    }
    /** Notes the steps that the expressions of a configuration name. */
    #refer(value, site, isExpression) {
        if (typeof value === "string" && isExpression) {
            for (const node of nodesNamed(value))
                this.#references.push({ node, site });
        }
        else if (Array.isArray(value)) {
            for (const one of value)
                this.#refer(one, site, isExpression);
        }
        else if (typeof value === "object" && value !== null) {
            // `assign` holds an expression under each name.
            for (const [name, one] of Object.entries(value))
                this.#refer(one, site, isExpression || EXPRESSIONS.includes(name) || name.endsWith("Expression"));
        }
    }
}
