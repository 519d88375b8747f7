"""Whether every figure is what it was: a hash of each result, written to a file and compared.

    python benchmarks/figures.py before.json           # writes the hashes
    python benchmarks/figures.py --compare before.json # names what differs; exit code 1 if any does

A rework that is to change no figure writes the file before it and compares behind it.  A hash is
that of the record that `archsim run --json` prints, costs included, without the package's version;
where a command refuses, that of its message.  Four kinds of entries:

network   each design on each built-in network, without operands
values    each design, and some with other memories, on the smallest layers of each network with
          drawn operands; the ofmaps are hashed too
chain     layers of a network whose ofmaps stay in the machine
command   what `list` and `show` print, and summary and waves of `trace`

About a minute and a half of processor time.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from archsim.cli.application import application
from archsim.energy import account
from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machine.design import Design
from archsim.machine.registry import load_design, registered, with_settings
from archsim.result import NetworkResult
from archsim.simulate import simulate
from workloads.builtin import builtin, networks
from workloads.layers import Network

SMALL_LAYERS, SMALL_MACS = 3, 14_000_000
"""Of each network, with operands: so many layers at most, of so many MACs at most."""

VARIANTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("edge-16", ("ifmap_memory.kind=boveda", "weight_memory.kind=boveda")),
    ("edge-16", ("dataflow=output_stationary", "ifmap_memory.kind=boveda")),
    ("edge-16", ("dataflow=input_stationary",)),
    ("scnn", ("activation_memory.kind=boveda",)),
    ("scnn", ("bank_hash=dnnsim", "barrier=channel", "group_rule=dnnsim", "bank_queue=1")),
)
"""Designs and settings, beside the named designs as they are."""

TRACED = (
    ("edge-16", "squeezenet1.1", "fire7/expand1x1"),
    ("volta", "resnet18", "fc"),
    ("vsq-16", "vit-b16", "head"),
    ("scnn", "googlenet", "inception_5a/5x5_reduce"),
)

CHAINED = ("alexnet", ("conv4", "conv5", "pool5"))

DRAWING = Drawing(density=0.4, seed=5)


UNHASHED = ("archsim", "schema_version")
"""What says who wrote a result, not what it is."""


def main(arguments: list[str] | None = None) -> int:
    """Write the hashes, or compare them with those of a file."""
    parser = argparse.ArgumentParser(description="Hash every figure, to see that none has changed.")
    parser.add_argument("file", type=Path, help="where the hashes are, or are to be")
    parser.add_argument("--compare", action="store_true", help="compare with the file instead")
    options = parser.parse_args(arguments)
    found = {name: _hash(answer) for name, answer in entries()}
    print(f"{process_time():.0f} s of processor time")
    if not options.compare:
        options.file.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
        print(f"{options.file}: {len(found)} hashes")
        return 0
    known = json.loads(options.file.read_text(encoding="utf-8"))
    wrong = sorted(name for name in {*known, *found} if known.get(name) != found.get(name))
    for name in wrong:
        what = "new" if name not in known else "gone" if name not in found else "differs"
        print(f"{what}: {name}")
    print(f"{len(found) - len(wrong)} of {len(found)} figures equal")
    return int(bool(wrong))


def entries() -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is hashed, by name: each a function that answers plain data, arrays or text."""
    for name, design in registered().items():
        for network in networks():
            yield f"network {name} {network}", lambda d=design, n=network: _costed(simulate(d, n))
    for name, design in _designs():
        for network in networks():
            part = _small_part(builtin(network))
            if part.layers:
                yield f"values {name} {network}", lambda d=design, n=part: _valued(d, n)
    yield "chain", lambda: _valued(load_design("scnn"), _chained(), chain=True)
    for what in (["list", "designs", "--json"], *(["show", name] for name in registered())):
        yield f"command {' '.join(what)}", lambda words=what: _printed(words)
    for design, network, layer in TRACED:
        yield f"trace {design} {network}", lambda at=(design, network, layer): _traced(*at)


def _designs() -> Iterator[tuple[str, Design]]:
    yield from registered().items()
    for name, settings in VARIANTS:
        yield f"{name} {' '.join(settings)}", with_settings(load_design(name), list(settings))


def _small_part(network: Network) -> Network:
    """The network's smallest layers of different sizes."""
    every = reversed(network.matrix_layers)
    sizes = {layer.macs: layer.name for layer in every if layer.macs <= SMALL_MACS}
    chosen = [sizes[macs] for macs in sorted(sizes)[:SMALL_LAYERS]]
    layers = tuple(layer for layer in network.matrix_layers if layer.name in chosen)
    return replace(network, layers=layers)


def _chained() -> Network:
    name, layers = CHAINED
    network = builtin(name)
    return replace(network, layers=tuple(one for one in network.layers if one.name in layers))


def _valued(design: Design, network: Network, **options: Any) -> Any:
    result = simulate(
        design,
        network,
        operands=lambda layer: design.intake.synthetic(layer, DRAWING),
        **options,
    )
    return [_costed(result), *(layer.ofmap for layer in result.layers)]


def _costed(result: NetworkResult) -> Mapping[str, Any]:
    """As `archsim run --json` has it."""
    record = {key: value for key, value in result.record().items() if key not in UNHASHED}
    try:
        return {**record, **account(result).record()}
    except InputError as error:
        return {**record, "why_no_energy": str(error)}


def _printed(words: list[str]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        application()(words, prog_name="archsim", standalone_mode=False)
    return printed.getvalue()


def _traced(design: str, network: str, layer: str) -> Any:
    """The summary, what each unit did, and every word at every port."""
    with tempfile.TemporaryDirectory() as place:
        files = {"perfetto": Path(place) / "trace.json", "vcd": Path(place) / "trace.vcd"}
        options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
        words = ["trace", design, network, "--layer", layer, "--json", *options]
        summary = json.loads(_printed(words))
        for name, path in files.items():
            summary[name] = {**summary[name], "file": name, "text": path.read_text("utf-8")}
    return summary


def _hash(answer: Callable[[], Any]) -> str:
    """Of what is answered, or of the message of a refusal."""
    try:
        found = answer()
    except InputError as error:
        found = f"refused: {error}"
    hashed = hashlib.sha256()
    for part in found if isinstance(found, list) else [found]:
        if isinstance(part, np.ndarray):
            hashed.update(f"{part.dtype}{part.shape}".encode() + part.tobytes())
        else:
            hashed.update(json.dumps(part, default=str).encode())
    return hashed.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
