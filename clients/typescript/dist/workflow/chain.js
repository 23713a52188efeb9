var _a;
import { Graph } from "./graph.js";
import { given, nameOf, Node, node } from "./nodes.js";
import { BuildError } from "./problems.js";
import { either } from "./values.js";
export class Chain {
    graph;
    /** Where the next step is attached. */
    ends;
    /** The next step starts with the run. */
    #begins;
    constructor(graph, ends, begins = false) {
        this.graph = graph;
        this.ends = ends;
        this.#begins = begins;
    }
    get isEnded() {
        return this.ends.length === 0 && !this.#begins;
    }
    /** A step of any type. */
    step(id, does, { inputs, name, timeoutMs, retries, retryDelayMs, primary, onFailure } = {}) {
        const { typeId, config } = typeof does === "string" ? node(does) : does;
        const settings = given({ timeout: timeoutMs, maxRetries: retries, retryDelayMs });
        const other = { ...(Object.keys(settings).length > 0 && { settings }), ...(primary && { outputRole: "primary" }) };
        const place = this.#add(id, typeId, { ...config }, { inputs, name, other });
        if (onFailure === undefined)
            return this.#at(place);
        const failed = this.#way({ ...place, rule: "any_failed" }, onFailure);
        if (failed.ends[0]?.node === id)
            throw new BuildError(`onFailure of "${id}" adds no step`);
        return this.#join(id, [this.#at(place), failed], "any_success");
    }
    /** Waits for approval. */
    approve(id, options = {}) {
        const { title, description, artifact, requiredApprovals, rejectionPolicy, approvers, timeoutMs, onReject, onRefine, name } = options;
        const actions = options.actions ?? (onRefine && ["accept", "reject", "refine"]);
        const config = given({ title, description, actions, requiredApprovals, rejectionPolicy, approversList: approvers, timeoutMs });
        const place = this.#add(id, "core.approvalGate", config, { inputs: artifact === undefined ? undefined : { artifact }, name });
        const ways = [this.#at(place)];
        if (onReject)
            ways.push(this.#way({ ...place, port: "reject" }, onReject));
        if (onRefine)
            ways.push(this.#way({ ...place, port: "refine" }, onRefine));
        return this.#join(id, ways, "any_success");
    }
    /** Waits for the answers to questions, by id. They are `output(id, "answers")`. */
    ask(id, questions, { timeoutMs, name } = {}) {
        const asked = Object.entries(questions).map(([key, question]) => ({ id: key, question }));
        return this.#at(this.#add(id, "core.clarificationGate", given({ questions: asked, timeoutMs }), { name }));
    }
    /** Waits for an event of another system with these values. It is `output(id, "event")`. */
    waitForEvent(id, eventType, correlation, { timeoutMs, name } = {}) {
        const config = given({ kind: "external-event", data: { eventType, correlation }, timeoutMs });
        return this.#at(this.#add(id, "core.interrupt", config, { name }));
    }
    /** Takes one of two ways. What follows comes after whichever was taken. */
    branch(id, when, { then, otherwise = (way) => way, name }) {
        const place = this.#add(id, "core.conditional", { expression: String(when) }, { name });
        return this.#join(id, [this.#way({ ...place, port: "true" }, then), this.#way({ ...place, port: "false" }, otherwise)], "any_success");
    }
    /** Takes all ways at once. What follows comes after all of them. */
    parallel(id, ...ways) {
        const place = this.#add(id, "core.parallel", {}, {});
        return this.#join(id, ways.map((way) => this.#way(place, way)));
    }
    /** Repeats its body: for each of `items`, `count` times, or `while` something is true. */
    loop(id, options, body) {
        const { items, count, into, maxIterations, name } = options;
        if ([items, count, options.while].filter((one) => one !== undefined).length !== 1)
            throw new BuildError(`the loop "${id}" needs one of items, count and while`);
        const text = (value) => (value === undefined ? undefined : String(value));
        const config = given({ items: text(items), count, into: nameOf(into), maxIterations, while: text(options.while) });
        const place = this.#add(id, "core.loop", config, { name });
        for (const end of this.#way({ ...place, port: "body" }, body).ends) {
            if (end.node === id)
                throw new BuildError(`the body of the loop "${id}" adds no step`);
            this.graph.addEdge(end, id);
        }
        return this.#at({ ...place, port: "done" });
    }
    /**
     * Calls a tool, an agent or a workflow for each item of a list, several at a time. Expressions of `arguments`, `task` and
     * `workflowInputs` know the item as `item`, and as `itemName`; without them each item is given as it is. The output
     * `results` has the results in order.
     */
    map(id, options, more = {}) {
        const { items, arguments: args, task, workflowInputs, itemName, into, ...rest } = options;
        if ([rest.tool, rest.agent, rest.workflow].filter((one) => one !== undefined).length !== 1)
            throw new BuildError(`the map "${id}" needs one of tool, agent and workflow`);
        const said = { items, arguments: args, task, inputs: workflowInputs };
        const config = Object.entries(said).map(([key, value]) => (value === undefined ? {} : either(key, `${key}Expression`, value)));
        return this.step(id, node("vendor.baton.map", Object.assign({ ...rest, ...given({ as: itemName, into: nameOf(into) }) }, ...config)), more);
    }
    /**
     * A supervisor, by rules or by an agent, and the node that carries out its decisions. Nothing follows it: a decision to
     * terminate completes the run.
     */
    supervise(id, options) {
        const { rules, otherwise, agentId, workers, inputs, dispatch = "hand-over", settings } = options;
        if ((rules === undefined) === (agentId === undefined))
            throw new BuildError(`the supervisor "${id}" needs either rules or agentId`);
        const lead = this.#add(id, "core.orchestrator.supervisor", { ...given({ rules, otherwise, agentId, workers }), ...settings }, { inputs });
        const { inputMapping, outputMapping, iterationCap, fanOut, maxConcurrency, join, onChildFailure, outputAttestation } = options;
        const config = given({ inputMapping, outputMapping, iterationCap, fanOutPolicy: fanOut, maxConcurrency, joinPolicy: join, onChildFailure, outputAttestation });
        this.graph.addEdge(this.graph.addNode(dispatch, "core.dispatch", config, [lead]), id);
        return new _a(this.graph, []);
    }
    /** Fails the run. Nothing follows. */
    fail(id, code, message) {
        this.#add(id, "core.fail", { code, message }, {});
        return new _a(this.graph, []);
    }
    /** Ends this way. The outputs are the run's. Nothing follows. */
    end(id = "end", outputs = {}) {
        this.#add(id, "core.end", {}, { inputs: outputs });
        return new _a(this.graph, []);
    }
    /** Where chains of one workflow end. */
    static endsOf(graph, chains, rule) {
        if (chains.length === 0 || chains.some((chain) => chain.graph !== graph || chain.ends.length === 0)) {
            throw new BuildError("only chains of this workflow that have not ended can be joined");
        }
        return chains.flatMap((chain) => chain.ends).map((end) => ({ ...end, rule: end.rule ?? rule }));
    }
    #add(id, typeId, config, more) {
        if (this.isEnded)
            throw new BuildError(`nothing can follow here, but the step "${id}" does`);
        return this.graph.addNode(id, typeId, config, this.ends, more);
    }
    #at(place) {
        return new _a(this.graph, [place]);
    }
    #way(place, arm) {
        const way = arm(this.#at(place));
        if (!(way instanceof _a) || way.graph !== this.graph)
            throw new BuildError(`a way behind "${place.node}" must give back the chain it was given, with its steps added`);
        return way;
    }
    /** What follows all ways that have not ended: with several of them behind a node that joins them. */
    #join(id, ways, rule) {
        const open = ways.flatMap((way) => way.ends);
        if (open.length < 2)
            return new _a(this.graph, open);
        return this.#at(this.graph.addNode(`${id}-join`, "core.merge", {}, open.map((end) => ({ ...end, rule }))));
    }
}
_a = Chain;
