# pyright: basic
"""An object file in memory, and its call, by llvmlite and ctypes: numba is not needed for it.

Compiled code takes arguments as numba's own functions do: where the answer goes, where an error
goes, then the words of all arguments; it returns a status.  `archsim.kernels.build` checks that
numba sees it alike.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from archsim.kernels import ahead, store
from archsim.kernels.closure import Part, fingerprint
from archsim.kernels.spelling import reader, words_of

_KINDS = {"q": ctypes.c_int64, "d": ctypes.c_double, "b": ctypes.c_uint8}

_OK, _NONE = 0, -2
"""Statuses of calls that went well; the second is that of functions without an answer."""


LINKED = "archsim_linked_"
"""With this the symbols of linked entries begin."""


@dataclass(frozen=True)
class Package:
    """What is kept of a compiled kernel.

    symbol: of the function.  words: of its arguments, each q (whole, or an address), d or b.
    result: its answer, spelled.  parts: how many types of arguments each part was compiled for.
    """

    symbol: str
    words: str
    result: str
    parts: dict[str, int]
    code: bytes

    def to_bytes(self) -> bytes:
        head = json.dumps([self.symbol, self.words, self.result, self.parts]).encode()
        return len(head).to_bytes(4, "little") + head + self.code

    @staticmethod
    def from_bytes(data: bytes) -> Package:
        split = 4 + int.from_bytes(data[:4], "little")
        return Package(*json.loads(data[4:split]), code=data[split:])


class Native:
    """A compiled kernel, loaded."""

    def __init__(self, name: str, package: Package) -> None:
        kinds = [_KINDS[kind] for kind in package.words]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *kinds)
        self._kinds = kinds
        self._function = prototype(_engine().add(package))
        self.parts = package.parts
        self._name = name
        self._room = ctypes.c_char * max(8 * len(words_of(package.result)), 8)
        self._read = reader(package.result)

    def call(self, words: list[Any]) -> Any:
        """Run it with the words of its arguments; arrays must stay alive meanwhile."""
        memory = self._room()
        error = ctypes.c_void_p()
        status = self._function(ctypes.addressof(memory), ctypes.addressof(error), *words)
        if status not in (_OK, _NONE):
            raise _exception(self._name, error.value)
        return self._read(memory, _release)

    def bound(self, words: list[Any], given: Any) -> Callable[[], Any]:
        """What runs it with these words, converted once; given: what must stay alive for them."""
        memory, error = self._room(), ctypes.c_void_p()
        places = ctypes.addressof(memory), ctypes.addressof(error)
        converted = [kind(word) for kind, word in zip(self._kinds, words, strict=True)]
        answer = memory, error, self._read
        return _Bound(self._name, self._function, (*places, *converted), answer, given)


@dataclass(frozen=True, eq=False, slots=True)
class _Bound:
    """answer: where it is left, where an error is, and what reads it.  given: kept here, since the
    words have addresses alone."""

    name: str
    function: Any
    words: tuple[Any, ...]
    answer: tuple[Any, Any, Callable[[Any, Callable[[int], None]], Any]]
    given: Any

    def __call__(self) -> Any:
        status = self.function(*self.words)
        memory, error, read = self.answer
        if status not in (_OK, _NONE):
            raise _exception(self.name, error.value)
        return read(memory, _release)


def _exception(name: str, error: int | None) -> BaseException:
    """What the kernel raised: a pickled (class, arguments, where), if it is always the same."""
    if error and not ctypes.c_int32.from_address(error + 32).value:
        address, size = ctypes.c_void_p.from_address(error), ctypes.c_int32.from_address(error + 8)
        kind, arguments, *_ = pickle.loads(ctypes.string_at(address.value or 0, size.value))
        return kind(*arguments)
    return RuntimeError(f"{name} failed")


def _release(owner: int) -> None:
    """Give up an array that a kernel made: it begins with the count of its references."""
    count = ctypes.c_int64.from_address(owner)
    count.value -= 1
    if count.value == 0:
        _free()(ctypes.c_void_p(owner))


@cache
def _free() -> Any:
    """The C library's; looked up once, since it takes longer than most kernels."""
    return ctypes.pythonapi["free"] if sys.platform == "win32" else ctypes.CDLL(None).free


class _Engine:
    """LLVM's, into which object files are put."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        self._llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), host_machine())
        self._lock = threading.Lock()

    def add(self, package: Package) -> int:
        """The address of a package's function."""
        with self._lock:
            file = self._llvm.object_file.ObjectFileRef.from_data(package.code)
            self._engine.add_object_file(file)
            self._engine.finalize_object()
            return self._engine.get_function_address(package.symbol)


@cache
def _engine() -> _Engine:
    return _Engine()


def host_machine() -> Any:
    """LLVM's idea of this machine, as numba makes it for compiled functions."""
    import llvmlite.binding as llvm

    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        opt=3,
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        reloc="static" if target.name.startswith("x86") else "default",
        codemodel="jitdefault",
        jit=True,
    )


@cache
def _environment() -> bytes:
    """All that compiled code depends on beside its sources."""
    import llvmlite.binding as llvm

    tools = [f"{name} {version(name)}" for name in ("numba", "llvmlite")]
    features = llvm.get_host_cpu_features().flatten()
    machine = [llvm.get_process_triple(), llvm.get_host_cpu_name(), features]
    python = [sys.implementation.cache_tag, sys.version, np.__version__]
    return "\n".join(["archsim kernels 3", *tools, *machine, *map(str, python)]).encode()


def _place(name: str, part: Part, spelled: str) -> tuple[str, str]:
    """The name and the key under which a compiled kernel is kept."""
    types = hashlib.sha256(spelled.encode()).hexdigest()[:8]
    key = hashlib.sha256(_environment() + spelled.encode() + fingerprint(part).encode())
    return f"{name}-{types}", key.hexdigest()[:32]


def is_kept(name: str, part: Part, spelled: str) -> bool:
    """Whether a kernel lies compiled in the user's cache folder."""
    return store.read(*_place(name, part, spelled)) is not None


def symbol_of(name: str, part: Part, spelled: str) -> str:
    """By which a linked entry is found by the kernels that call it."""
    return f"{LINKED}{part.function.__name__}_{_place(name, part, spelled)[1]}"


def make(name: str, part: Part, spelled: str, build: Callable[[], bytes]) -> None:
    """Have it kept, without loading it."""
    place = _place(name, part, spelled)
    if store.read(*place) is None:
        store.write(*place, build())


def load(
    name: str,
    part: Part,
    spelled: str,
    build: Callable[[], bytes],
    load_linked: Callable[[], None],
) -> Native:
    """A kernel for some types of arguments: as it was kept, or built now and kept.

    load_linked: loads what it is linked to, which comes first.
    """
    place = _place(name, part, spelled)
    kept = store.read(*place)
    if kept is None:
        kept = ahead.awaited(name, lambda: store.read(*place))
    if kept is None:
        kept = build()
        store.write(*place, kept)
    load_linked()
    return Native(name, Package.from_bytes(kept))
