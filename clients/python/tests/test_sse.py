"""The parser of streams, with what networks and hosts may send."""

from __future__ import annotations

import random

import pytest

from baton_client.errors import NotUnderstood
from baton_client.sse import Frame, FrameParser

STREAM = (
    '\ufeffid: 1\nevent: a\ndata: {"x":\n data: no\ndata:  two\n\n'
    ": a comment\r\n\r\nid: 2\r\ndata: ü and 😀\r\n\r\nevent: nothing\n\n"
    "retry: 1500\nretry: soon\ndata\n\ndata: beside\rdata: it\r\rid: 3\ndata: unfinished"
).encode()
FRAMES = [
    Frame("a", '{"x":\n two', "1"),
    Frame("message", "ü and 😀", "2"),
    Frame("message", "", None),
    Frame("message", "beside\nit", None),
]


def test_frames_are_the_same_however_the_bytes_are_cut() -> None:
    for size in (1, 2, 3, 5, 7, 64, len(STREAM)):
        parser = FrameParser()
        frames = [frame for at in range(0, len(STREAM), size) for frame in parser.push(STREAM[at : at + size])]
        assert frames == FRAMES, size
        assert parser.retry_ms == 1500
    for seed in range(200):
        dice = random.Random(seed)
        cuts = sorted(dice.choices(range(len(STREAM)), k=12))
        parser = FrameParser()
        parts = [STREAM[a:b] for a, b in zip([0, *cuts], [*cuts, len(STREAM)], strict=True)]
        assert [frame for part in parts for frame in parser.push(part)] == FRAMES, seed


def test_an_id_counts_for_its_frame_only() -> None:
    frames = FrameParser().push(b"id: 7\ndata: a\n\ndata: b\n\nid: 1\x002\ndata: c\n\n")
    assert [frame.id for frame in frames] == ["7", None, None]


@pytest.mark.parametrize("text", [b"x" * 10, b"data: 1\n" * 10, b":" + b"c" * 10])
def test_what_never_ends_is_not_kept(text: bytes) -> None:
    parser = FrameParser(most=1000)
    with pytest.raises(NotUnderstood, match="longer than the 1000 bytes"):
        for _ in range(1000):
            parser.push(text)


def test_a_large_event_in_small_pieces_takes_no_longer_than_it_must() -> None:
    parser = FrameParser()
    data = b"data: " + b"x" * 2_000_000 + b"\n\n"
    frames = [frame for at in range(0, len(data), 100) for frame in parser.push(data[at : at + 100])]
    assert len(frames) == 1 and len(frames[0].data) == 2_000_000
