import type { Connection } from "./http.js";
export declare class Group {
    protected readonly connection: Connection;
    constructor(connection: Connection);
}
