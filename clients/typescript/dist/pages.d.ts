import type { CallOptions, Connection, Request } from "./http.js";
/** Gives each item of each page. `cursor` is the parameter that takes what a page has as `following`. */
export declare function pages<T>(connection: Connection, first: Request, call: CallOptions, items: string, cursor?: string, following?: string): AsyncGenerator<T, void, void>;
