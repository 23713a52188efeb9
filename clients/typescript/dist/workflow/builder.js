import { Chain } from "./chain.js";
import { Graph } from "./graph.js";
import { given } from "./nodes.js";
import { caller } from "./problems.js";
import { Variable } from "./values.js";
/**
 * Each chain that begins at the workflow itself starts with the run; several of them run in parallel. With a type for its
 * inputs, `new Workflow<{ amount: number }>("order")`, the compiler checks them wherever a run is started.
 */
export class Workflow extends Chain {
    id;
    #head;
    #tail;
    constructor(id, { name, version = "1.0.0", description, settings = {}, metadata = {}, configurableSchema } = {}) {
        super(new Graph(id, caller()), [], true);
        this.id = id;
        this.#head = given({ id, name: name ?? id, description, version });
        this.#tail = given({ metadata, settings, configurableSchema });
    }
    /** A variable that whoever starts a run must give. */
    input(name, type, { description, sensitive } = {}) {
        return this.graph.addVariable(name, type, given({ required: true, description, sensitive: sensitive || undefined }));
    }
    /** A variable that may be given, and that steps may set. */
    variable(name, type, defaultValue, { description, sensitive } = {}) {
        return this.graph.addVariable(name, type, given({ defaultValue, description, sensitive: sensitive || undefined }));
    }
    /** A value that changes by a rule. It is read like a variable. */
    channel(name, reducer = "replace", { default: first, maxSize, ...more } = {}) {
        this.graph.checkFree(name, caller());
        this.graph.channels[name] = { reducer, ...given({ default: first, maxSize }), ...more };
        return new Variable(name, this.graph);
    }
    /** Continues after several chains that were built apart. */
    join(id, chains, rule = "all_success") {
        const ends = Chain.endsOf(this.graph, chains, rule === "all_success" ? undefined : rule);
        return new Chain(this.graph, [this.graph.addNode(id, "core.merge", {}, ends)]);
    }
    /** The definition that `workflows.register` takes. Throws BuildError for a step that is named and not there. */
    definition() {
        return this.graph.document(this.#head, this.#tail);
    }
    /** The same as a file for `baton workflow validate` and for folders of workflows. */
    toJson() {
        return `${JSON.stringify(this.definition(), null, 2)}\n`;
    }
    /** Asks the host. Throws InvalidWorkflow with each problem at the line that built that part. */
    check(client) {
        return client.workflows.check(this);
    }
    /** What a JSON pointer into the definition points at, and the line that built it. */
    partAt(pointer) {
        return this.graph.partAt(pointer);
    }
}
