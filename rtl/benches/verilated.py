"""Run benches on emitted Verilog at full speed: the whole bench is C++, beside the core.

Verilator makes C++ of the core, `rtl.benches.wrapper` adds the bench, and the library of both is
kept in the build cache and loaded here. NumPy arrays go in and come out; a run is one call.
"""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rtl.benches.bench import Bench, Crossing, Outcome, ProtocolError, StreamPort, Watch
from rtl.benches.boundary import check_boundary
from rtl.benches.handle import Handle
from rtl.benches.verilated_build import Library, build_library

__all__ = ["Session", "Verilated"]

_ALL_CYCLES = 2**62


class Verilated:
    """A core compiled from Verilog, ready to run any bench that fits its boundary.

    `ports` and `probes` (plain outputs of at most 64 bits) are read off the Verilog. The text is
    compiled on first use and found in the cache ever after. `watches` are
    looked at in every run.  `optimised`: for runs of minutes; compiled for a third longer, and an
    eighth faster. Sessions are independent, and may run
    in different threads at once. Raises `ToolchainError` if a tool is missing or fails.
    """

    def __init__(
        self,
        verilog: str,
        *,
        top: str = "top",
        watches: Sequence[Watch] = (),
        optimised: bool = False,
    ) -> None:
        self._verilog = verilog
        self._top = top
        self._watches = tuple(watches)
        self._optimised = optimised
        self._libraries: dict[str, tuple[Library, ctypes.CDLL]] = {}
        library, _ = self._load("")
        self.ports: tuple[StreamPort, ...] = library.ports
        self.probes: tuple[tuple[str, int], ...] = library.probes

    def run(self, bench: Bench, *, trace: Path | None = None) -> Outcome:
        """Run `bench` to its end. Writes a wave to `trace` (`.fst` or `.vcd`) if given.

        Raises `ValueError` if bench and core do not fit, `ProtocolError` if the core breaks the
        stream rule.
        """
        with self.start(bench, trace=trace) as session:
            session.step()
            return session.outcome()

    def start(self, bench: Bench, *, trace: Path | None = None) -> "Session":
        """A session of `bench` at cycle 0, to be stepped in batches of cycles."""
        suffix = trace.suffix if trace is not None else ""
        if trace is not None and suffix not in (".fst", ".vcd"):
            raise ValueError(f"trace must end in .fst or .vcd, not {trace.name!r}")
        if trace is not None and not trace.absolute().parent.is_dir():
            raise FileNotFoundError(f"no folder for the trace {trace}")
        check_boundary(bench, self.ports, self.probes)
        if bench.before is not None:
            check_boundary(bench.before, self.ports, self.probes)
        return Session(bench, *self._load(suffix), trace=trace, watches=self._watches)

    def _load(self, suffix: str) -> tuple[Library, ctypes.CDLL]:
        if suffix not in self._libraries:
            names = [name for one in self._watches for name in one.wires]
            library = build_library(
                *(self._verilog, self._top),
                trace=suffix,
                wires=names,
                optimised=self._optimised,
            )
            self._libraries[suffix] = library, _open(library.path)
        return self._libraries[suffix]


class Session(Handle):
    """One run of a bench, at whichever cycle it has come to; `close` finishes its wave."""

    def __init__(
        self,
        bench: Bench,
        library: Library,
        code: ctypes.CDLL,
        *,
        trace: Path | None = None,
        watches: Sequence[Watch] = (),
    ) -> None:
        self._bench = bench
        self._watches = watches
        self._code = code
        self._library = library
        self._numbers = {port.name: number for number, port in enumerate(library.ports)}
        self._kept: list[npt.NDArray[Any]] = []  # what the C++ side points into
        path = str(trace).encode() if trace is not None else None
        self.hold(code.bench_new(bench.max_cycles, bench.tail_cycles, path), code.bench_delete)
        for watch in watches:
            names = " ".join(watch.wires)
            code.bench_watch(self.live, watch.path.encode(), names.encode())
        runs = [bench] if bench.before is None else [bench.before, bench]
        for run in runs:
            code.bench_restart(self.live, run.max_cycles, run.tail_cycles)
            for port in run.ports:
                self._hand_over(port, run)
            code.bench_begin(self.live)
            self._check()
            if run is not bench:
                self.step()

    @property
    def cycle(self) -> int:
        """Cycles run so far."""
        return self._code.bench_cycle(self.live)

    @property
    def running(self) -> bool:
        """Whether the run has not come to its end."""
        return bool(self._code.bench_running(self.live))

    def step(self, cycles: int = _ALL_CYCLES) -> int:
        """Run `cycles` cycles, or fewer if the run ends; returns how many were run.

        Raises `ProtocolError` if the core breaks the stream rule, `RuntimeError` if the simulator
        gives up (on a combinational loop, say); the run has then ended.
        """
        ran = self._code.bench_run(self.live, cycles)
        self._check()
        for port in self._bench.ports:
            if self._code.bench_violated(self.live, self._numbers[port.name]):
                raise ProtocolError(port.name, self.cycle)
        return ran

    def outcome(self) -> Outcome:
        """What has crossed so far, and the probes as they are now.

        `timed_out` is True as long as the run has not come to its proper end.
        """
        values = np.zeros(len(self._library.probes) + 1, np.uint64)
        self._code.bench_probes(self.live, _pointer(values))
        names = [name for name, _ in self._library.probes]
        probes = {name: int(values[names.index(name)]) for name, _ in self._bench.probes}
        seen = np.zeros(len(self._watches) + 1, np.uint8)
        self._code.bench_seen(self.live, _pointer(seen))
        return Outcome(
            crossings={port.name: self._crossing(port) for port in self._bench.ports},
            probes=probes,
            cycles=self.cycle,
            timed_out=bool(self._code.bench_timed_out(self.live)),
            seen={one.name: int(seen[n]) for n, one in enumerate(self._watches)},
        )

    def _check(self) -> None:
        failure = self._code.bench_failure(self.live)
        if failure:
            raise RuntimeError(f"the simulation has failed: {failure.decode(errors='replace')}")

    def _hand_over(self, port: StreamPort, bench: Bench) -> None:
        stimulus = bench.stimuli[port.name]
        words = stimulus.words if stimulus.words is not None else np.zeros(1, np.uint8)
        arrays = [np.ascontiguousarray(a) for a in (words, stimulus.gaps, stimulus.earliest)]
        self._kept += arrays
        pointers = [_pointer(array) for array in arrays]
        self._code.bench_port(self.live, self._numbers[port.name], len(stimulus), *pointers)

    def _crossing(self, port: StreamPort) -> Crossing:
        at, seen = ctypes.c_void_p(), ctypes.c_void_p()
        number = self._numbers[port.name]
        n = self._code.bench_crossed(self.live, number, ctypes.byref(at), ctypes.byref(seen))
        cycles = _copy(at, 8 * n).view(np.int64)
        listed = self._bench.stimuli[port.name].words
        if listed is not None:
            return Crossing(cycles=cycles, words=listed[:n].copy())
        words = _copy(seen, port.word_bytes * n)
        return Crossing(cycles=cycles, words=words.reshape(n, port.word_bytes))


def _pointer(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _copy(address: ctypes.c_void_p, size: int) -> npt.NDArray[np.uint8]:
    if not size or address.value is None:
        return np.zeros(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address.value)).copy()


def _open(path: Path) -> ctypes.CDLL:
    code = ctypes.CDLL(str(path))
    pointer, number, small = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int
    signatures = {
        "bench_new": (pointer, [number, number, ctypes.c_char_p]),
        "bench_delete": (None, [pointer]),
        "bench_port": (None, [pointer, small, number, pointer, pointer, pointer]),
        "bench_watch": (None, [pointer, *[ctypes.c_char_p] * 2]),
        "bench_seen": (None, [pointer, pointer]),
        "bench_restart": (None, [pointer, number, number]),
        "bench_begin": (None, [pointer]),
        "bench_failure": (ctypes.c_char_p, [pointer]),
        "bench_run": (number, [pointer, number]),
        "bench_cycle": (number, [pointer]),
        "bench_running": (small, [pointer]),
        "bench_timed_out": (small, [pointer]),
        "bench_violated": (small, [pointer, small]),
        "bench_crossed": (number, [pointer, small, pointer, pointer]),
        "bench_probes": (None, [pointer, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(code, name)
        function.restype = result
        function.argtypes = arguments
    return code
