// Lists that come in pages.
import type { Json } from "./api.js";
import { NotUnderstood } from "./errors.js";
import type { CallOptions, Connection, Request } from "./http.js";

/** Gives each item of each page. `cursor` is the parameter that takes what a page has as `following`. */
export async function* pages<T>(connection: Connection, first: Request, call: CallOptions, items: string, cursor = "cursor", following = "nextCursor"): AsyncGenerator<T, void, void> {
  let place: string | undefined;
  do {
    const query: [string, string][] = [...(first.query ?? []), ...(place === undefined ? [] : [[cursor, place] as [string, string]])];
    const page = await connection.send<Record<string, Json>>({ ...first, query }, call);
    yield* page[items] as T[];
    if (page[following] === place && place !== undefined) throw new NotUnderstood("a list goes on where it has been");
    place = page[following] ?? undefined;
  } while (place !== undefined);
}
