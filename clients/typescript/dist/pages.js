import { NotUnderstood } from "./errors.js";
/** Gives each item of each page. `cursor` is the parameter that takes what a page has as `following`. */
export async function* pages(connection, first, call, items, cursor = "cursor", following = "nextCursor") {
    let place;
    do {
        const query = [...(first.query ?? []), ...(place === undefined ? [] : [[cursor, place]])];
        const page = await connection.send({ ...first, query }, call);
        yield* page[items];
        if (page[following] === place && place !== undefined)
            throw new NotUnderstood("a list goes on where it has been");
        place = page[following] ?? undefined;
    } while (place !== undefined);
}
