"""How a method that is written once serves both clients: it blocks in `Client`, and is awaited in `AsyncClient`."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    overload,
)

from .request import Options, Steps

P = ParamSpec("P")
T = TypeVar("T")


class Sync:
    """Marks the groups of `Client`."""


class Async:
    """Marks the groups of `AsyncClient`."""


M = TypeVar("M", bound=Sync | Async)


class Carrier(Protocol):
    """One of the two loops of `carry`, for one call."""

    def run(self, steps: Any) -> Any: ...

    def iterate(self, steps: Any) -> Any: ...


class Group(Generic[M]):
    """Some methods of a client, by what they are about."""

    def __init__(self, carrier: Callable[[], Carrier], options: Options) -> None:
        self._carrier = carrier
        self._options = options


class call(Generic[P, T]):
    """A method with one result."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, group: Group[Sync], owner: Any = None) -> Callable[P, T]: ...

    @overload
    def __get__(self, group: Group[Async], owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]: ...

    def __get__(self, group: Any, owner: Any = None) -> Any:
        if group is None:
            return self._steps

        @functools.wraps(self._steps)
        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return group._carrier().run(self._steps(group, *args, **kwargs))

        return bound


class Items(Generic[T]):
    """Steps that give one `T` after the other."""

    def __init__(self, steps: Steps[None]) -> None:
        self.steps = steps


class items(Generic[P, T]):
    """A method that gives one thing after the other. The connection is closed when the iterator is."""

    def __init__(self, make: Callable[Concatenate[Any, P], Items[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, group: Group[Sync], owner: Any = None) -> Callable[P, Generator[T, None, None]]: ...

    @overload
    def __get__(self, group: Group[Async], owner: Any = None) -> Callable[P, AsyncGenerator[T, None]]: ...

    def __get__(self, group: Any, owner: Any = None) -> Any:
        if group is None:
            return self._make

        @functools.wraps(self._make)
        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return group._carrier().iterate(self._make(group, *args, **kwargs).steps)

        return bound
