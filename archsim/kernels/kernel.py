"""The decorators of compiled functions, and what is called in their place.

    @kernel("i8.2, i8.1")     an entry: what Python calls, with these types of arguments
    @kernel("i8.1", answer="int")  the same, and kernels that call it do not contain it: it is
                              compiled once, by itself, and linked to them where they are loaded
    @kernel                   a part of other kernels; from Python it runs as Python
    @inlined                  a part that is merged into its callers: without that a third of a
                              scan's time goes to counting the references of the arrays passed on

`?` in a declared type stands for any one character, `*` for any: the entry is then compiled for
each of the types that are met.  Division by zero cannot happen in a checked design, so kernels do
not test for it.  Other Python threads run while a kernel does.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

from archsim.kernels import ahead
from archsim.kernels.closure import Part, fingerprint, names_of
from archsim.kernels.spelling import Arguments, examples

if TYPE_CHECKING:
    from archsim.kernels.native import Native

P = ParamSpec("P")
R = TypeVar("R")

_lock = threading.RLock()

Announce = Callable[[str], None]

_listener: list[Announce] = []
"""Who is told, by name, of a kernel that is about to be compiled: one or nobody."""


class Kernel(Generic[P, R]):
    """A function and, where it has declared types, its compiled forms."""

    def __init__(
        self,
        function: Callable[P, R],
        declared: str | None,
        *,
        merged: bool,
        short_loops: bool = False,
        answer: str | None = None,
    ) -> None:
        functools.update_wrapper(self, function)
        self.declared = None if declared is None else declared.replace(" ", "")
        linked = None if self.declared is None or answer is None else (self.declared, answer)
        self.part = Part(cast("Any", function), merged, short_loops, linked)
        self._natives: dict[str, Native] = {}
        self._run: Callable[P, R] = function
        if declared is not None and not os.environ.get("NUMBA_DISABLE_JIT"):
            self._run = self._compiled

    @property
    def py_func(self) -> Callable[P, R]:
        """The function itself, by numba's name for it."""
        return cast("Callable[P, R]", self.part.function)

    @property
    def name(self) -> str:
        """Of its module, and its own."""
        return f"{self.part.function.__module__}.{self.part.function.__qualname__}"

    @property
    def forms(self) -> dict[str, dict[str, int]]:
        """Compiled for which types of arguments; of each, its parts, and of how many types."""
        return {spelled: dict(native.parts) for spelled, native in self._natives.items()}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run it: an entry compiled, a part as Python.  Raises `TypeError` for other arguments than
        those declared."""
        return self._run(*args, **kwargs)

    def bound(self, *args: P.args, **kwargs: P.kwargs) -> Callable[[], R]:
        """What runs it on these arguments, arrays as they are whenever it is called, which takes a
        ninth of the time of a call that tells them again; by one thread at a time.

        Raises `TypeError` as a call does, and for arrays that are not in C order.
        """
        if self._run is self.part.function:
            return functools.partial(self._run, *args, **kwargs)
        native, arguments, given = self._told(args, kwargs)
        if arguments.copies:
            raise TypeError(f"{self.name} is bound to arrays in C order alone")
        return native.bound(arguments.words, given)

    def _compiled(self, *args: P.args, **kwargs: P.kwargs) -> R:
        native, arguments, _ = self._told(args, kwargs)
        found = native.call(arguments.words)
        if arguments.copies:
            arguments.give_back()
        return found

    def _told(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Native, Arguments, tuple[Any, ...]]:
        """The compiled form for these arguments, their words, and all of them in place."""
        given = args if not kwargs else self._in_place(args, kwargs)
        arguments = Arguments()
        for value in given:
            arguments.add(value)
        spelled = arguments.spelled
        native = self._natives.get(spelled)
        if native is None:
            native = self._native(spelled, given)
        return native, arguments, given

    def _in_place(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments given by name, where they belong."""
        code = self.part.function.__code__
        names = code.co_varnames[len(args) : code.co_argcount]
        if set(names) != set(kwargs):
            raise TypeError(f"{self.name} takes {', '.join(code.co_varnames[: code.co_argcount])}")
        return (*args, *(kwargs[name] for name in names))

    def _native(self, spelled: str, given: tuple[Any, ...]) -> Native:
        """The compiled form for these types: loaded, or compiled and kept."""
        from archsim.kernels.native import load

        if not fnmatchcase(spelled, self.declared or ""):
            raise TypeError(f"{self.name} is declared for ({self.declared}), not ({spelled})")
        with _lock:
            if spelled not in self._natives:
                build, linked = self._build(given), self._load_linked
                self._natives[spelled] = load(self.name, self.part, spelled, build, linked)
            return self._natives[spelled]

    def examples(self) -> tuple[Any, ...]:
        """Arguments of the types that it is declared for.  Raises `TypeError` where these are not
        one each, as those of a part are."""
        return examples(self.declared or "*", self.part.function.__globals__)

    def make(self) -> None:
        """Have it compiled and kept.  Raises `TypeError` as `examples` does."""
        from archsim.kernels.native import make

        given = self.examples()
        make(self.name, self.part, self.declared or "", self._build(given))

    def _load_linked(self) -> None:
        """Load the entries that are linked to it."""
        for one in linked_to(self.part):
            one._native(one.declared or "", one.examples())

    def _build(self, given: tuple[Any, ...]) -> Callable[[], bytes]:
        def build() -> bytes:
            from archsim.kernels.build import compile_entry

            ahead.begin(self)
            for tell in _listener:
                tell(self.name)
            return compile_entry(self.part, given)

        return build


def linked_to(part: Part) -> list[Kernel[..., Any]]:
    """The entries that a compiled part calls without containing them."""
    found: list[Kernel[..., Any]] = []
    seen, waiting = {id(part.function)}, [part]
    while waiting:
        for _, _, value in names_of(waiting.pop().function):
            if isinstance(value, Kernel) and id(value.part.function) not in seen:
                seen.add(id(value.part.function))
                if value.part.linked is None:
                    waiting.append(value.part)
                else:
                    found.append(cast("Kernel[..., Any]", value))
    return found


@overload
def kernel(declared: Callable[P, R], /) -> Kernel[P, R]: ...
@overload
def kernel(
    declared: str, /, *, short_loops: bool = False, answer: str | None = None
) -> Callable[[Callable[P, R]], Kernel[P, R]]: ...
def kernel(declared: Any, /, *, short_loops: bool = False, answer: str | None = None) -> Any:
    """An entry with declared types of arguments, or a part of other kernels.

    short_loops: its loops run a few times, and statements side by side are put into vectors
    instead.  answer: `int`, `float`, `bool` or `none`, where kernels that call it do not contain
    it but are linked to it; its arguments are numbers and arrays.
    """
    if isinstance(declared, str):

        def entry(function: Callable[..., Any]) -> Kernel[..., Any]:
            return Kernel(function, declared, merged=False, short_loops=short_loops, answer=answer)

        return entry
    return Kernel(declared, None, merged=False)


def inlined(function: Callable[P, R]) -> Kernel[P, R]:
    """A part that is merged into the kernels that call it."""
    return Kernel(function, None, merged=True)


def not_compiled(entries: Iterable[Kernel[..., Any]]) -> list[Kernel[..., Any]]:
    """Of entries, each declared for one type of each argument, and of those that are linked to
    them, the ones that the next call will compile, in the order in which they are met."""
    from archsim.kernels.native import is_kept

    every: dict[str, Kernel[..., Any]] = {}
    for one in entries:
        every |= {each.name: each for each in (one, *linked_to(one.part))}
    return [one for one in every.values() if not is_kept(one.name, one.part, one.declared or "")]


def announce_to(tell: Announce) -> None:
    """From now on `tell`, and nobody else, gets the name of each kernel that will be compiled."""
    _listener[:] = [tell]


__all__ = ["Kernel", "announce_to", "fingerprint", "inlined", "kernel", "not_compiled"]
