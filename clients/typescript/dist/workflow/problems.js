import { BatonError } from "../errors.js";
const HERE = new URL("..", import.meta.url).href;
const FRAME = /((?:[a-z][a-z+.-]+:\/\/|\/|[A-Za-z]:\\)[^\s()]*?):(\d+):\d+\)?$/;
export const said = (site) => `${site.file}:${site.line}`;
/** The nearest line outside this package. */
export function caller() {
    for (const frame of (new Error().stack ?? "").split("\n")) {
        const [, file, line] = FRAME.exec(frame.trim()) ?? [];
        if (file !== undefined && !file.startsWith(HERE) && !`file://${file}`.startsWith(HERE)) {
            return { file: file.replace(/^file:\/\//, ""), line: Number(line) };
        }
    }
    return { file: "unknown", line: 0 };
}
/** The program builds something that can be no workflow. */
export class BuildError extends BatonError {
    site;
    constructor(message, site = caller()) {
        super(`${said(site)}: ${message}`);
        this.site = site;
    }
}
/** The host would refuse to register the workflow. */
export class InvalidWorkflow extends BatonError {
    problems;
    constructor(workflowId, problems) {
        const lines = problems.map(({ site, part, message, code, pointer }) => `  ${said(site)}: ${part}: ${message} [${code}] (${pointer || "the whole"})`);
        super([`the workflow ${workflowId} is not valid:`, ...lines].join("\n"));
        this.problems = problems;
    }
}
export function throwProblems(workflow, validation) {
    if (validation.valid)
        return;
    const problems = validation.problems.map(({ message, code, pointer }) => ({ message, code, pointer, ...workflow.partAt(pointer) }));
    throw new InvalidWorkflow(workflow.id, problems);
}
