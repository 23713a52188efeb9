"""Lists that come in pages."""

from __future__ import annotations

from typing import Any

from .errors import NotUnderstood
from .request import Give, Options, Request, Steps, send


def pages(
    first: Request, options: Options, *, items: str, cursor: str = "cursor", following: str = "nextCursor"
) -> Steps[None]:
    """Gives each item of each page. `cursor` is the parameter that takes what a page has as `following`."""
    place: str | None = None
    while True:
        members = first.query if place is None else [*first.query, (cursor, place)]
        page: Any = yield from send(Request(first.method, first.path, members), options)
        for item in page[items]:
            yield Give(item)
        last, place = place, page.get(following)
        if place is None:
            return
        if place == last:
            raise NotUnderstood("a list goes on where it has been")
