"""Server-sent events out of bytes, however these are cut."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import NotUnderstood

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""Twice what a run may hold, so that a snapshot in `values` mode fits. Longer ones are no host's of ours."""


@dataclass(frozen=True)
class Frame:
    event: str
    data: str
    id: str | None
    """The id of this frame; None if it has none of its own, so that it does not move the place to resume from."""


class FrameParser:
    """Takes bytes as they come and gives the frames that are complete. Lines end in LF, CRLF or CR."""

    def __init__(self, most: int = MAX_EVENT_BYTES) -> None:
        self._most = most
        self._line = bytearray()
        self._after_cr = False
        self._first = True
        self._event = ""
        self._data: list[str] = []
        self._id: str | None = None
        self._size = 0
        self.retry_ms: int | None = None
        """How long the host wants to be left alone before a new connection, if it said so."""

    def push(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        for part in data.splitlines(keepends=True):
            if self._after_cr and part.startswith(b"\n"):
                part = part[1:]
                self._after_cr = False
            if not part:
                continue
            bare = part.rstrip(b"\r\n")
            self._hold(bare)
            self._after_cr = part.endswith(b"\r")
            if len(bare) < len(part):
                self._take(bytes(self._line), frames)
                self._line.clear()
        return frames

    def _hold(self, more: bytes) -> None:
        if self._size + len(self._line) + len(more) > self._most:
            raise NotUnderstood(f"an event is longer than the {self._most} bytes that are read")
        self._line += more

    def _take(self, line: bytes, frames: list[Frame]) -> None:
        if self._first:
            self._first = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data:
                frames.append(Frame(self._event or "message", "\n".join(self._data), self._id))
            self._clear()
            return
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(line)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value[:9])

    def _clear(self) -> None:
        self._event, self._data, self._id, self._size = "", [], None, 0
