import { Group } from "./group.js";
import { change, get, path } from "./http.js";
import { Workflow } from "./workflow/builder.js";
import { throwProblems } from "./workflow/problems.js";
export class Workflows extends Group {
    /** Registers a version. The same content again changes nothing. */
    async register(definition, call) {
        return this.connection.send(change("POST", ["v1", "workflows"], plain(definition)), call);
    }
    /** What the host has to say about a definition. Registers nothing. */
    async validate(definition, call) {
        return this.connection.send(validation(definition), call);
    }
    /** Throws InvalidWorkflow with each problem at the line that built that part of the workflow. */
    async check(workflow, call) {
        throwProblems(workflow, await this.validate(workflow, call));
    }
    /** The newest version of each workflow. */
    async list(call) {
        return (await this.connection.send(get(["v1", "workflows"]), call)).workflows;
    }
    /** A definition: the newest, or that of one version. */
    get(workflowId, { version, ...call } = {}) {
        const newest = ["v1", "workflows", workflowId];
        return this.connection.send(get(version === undefined ? newest : [...versionsOf(workflowId), String(version)]), call);
    }
    /** Every version, newest first. */
    async versions(workflowId, call) {
        return (await this.connection.send(get(versionsOf(workflowId)), call)).versions;
    }
}
function versionsOf(workflowId) {
    return ["v1", "host", "baton", "workflows", workflowId, "versions"];
}
function plain(definition) {
    return definition instanceof Workflow ? definition.definition() : definition;
}
function validation(definition) {
    return { method: "POST", path: path("v1", "host", "baton", "workflows", "validate"), json: plain(definition) };
}
