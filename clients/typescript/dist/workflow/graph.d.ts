import type { Json } from "../api.js";
import { type Site } from "./problems.js";
import { type Inputs, Variable } from "./values.js";
/** Where the next step goes: behind this node, through this port. */
export interface Place {
    node: string;
    column: number;
    port?: string | undefined;
    rule?: string | undefined;
}
/** Something that was built, and by which line. */
export interface Part {
    part: string;
    site: Site;
}
/** Nodes, edges and variables in the order in which they were made: the same program gives the same bytes. */
export declare class Graph {
    #private;
    readonly id: string;
    readonly site: Site;
    readonly nodes: Record<string, Json>[];
    readonly edges: Record<string, Json>[];
    readonly variables: Record<string, Json>[];
    readonly channels: Record<string, Json>;
    constructor(id: string, site: Site);
    addNode(id: string, typeId: string, config: Record<string, Json>, after: Place[], more?: {
        inputs?: Inputs | undefined;
        name?: string | undefined;
        other?: Record<string, Json>;
    }): Place;
    addEdge({ node, port, rule }: Place, target: string): void;
    addVariable<T>(name: string, type: string, more: Record<string, Json>): Variable<T>;
    checkFree(name: string, site: Site): void;
    /** The definition, with its members in a fixed order. */
    document(head: Record<string, Json>, tail: Record<string, Json>): Record<string, Json>;
    /** What was built at a JSON pointer, and by which line. */
    partAt(pointer: string): Part;
}
