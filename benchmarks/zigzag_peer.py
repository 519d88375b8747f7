"""ZigZag beside a study of ours: CPU for a network on a design, to the figures of each.

    python3 -m venv zigzag && zigzag/bin/pip install zigzag-dse==3.9.1 six
    python benchmarks/zigzag_peer.py --zigzag zigzag/bin/python

ZigZag reads the ResNet-18 that it ships as ONNX, without its weights; ours is the built-in one, of
the same layers.  ZigZag (Mei et al., IEEE
TC 2021) evaluates its own `tpu_like` hardware, a 32 × 32 array, with its own mapping file and the
defaults of its API (loma, latency): it searches a temporal mapping for every layer.  Ours is a
study of random arrays, cycles, energy and area, each layer mapped by `rough`, or by the default
mapper, which searches as well, every point stored.  The hardware is not the same and neither are
the models: this compares what a sweep of designs costs, not what is said of one.

Times are of the processor, one thread, the interpreter's start and imports apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
os.environ.update({**ONE_THREAD, "ARCHSIM_THREADS": "1"})

TARGET = 10_000

THEIRS = """
import importlib.metadata, json, logging, os, sys, time
import zigzag
from zigzag.api import get_hardware_performance_zigzag as evaluate
logging.disable(logging.CRITICAL)
inputs = os.path.join(os.path.dirname(zigzag.__file__), "inputs")
network = os.path.join(inputs, "workload", "resnet18.onnx")
began = time.process_time()
energy, latency, _ = evaluate(
    network, os.path.join(inputs, "hardware", "tpu_like.yaml"),
    os.path.join(inputs, "mapping", "tpu_like.yaml"), dump_folder=sys.argv[1],
    loma_show_progress_bar=False,
)
seconds = time.process_time() - began
print(json.dumps({
    "version": importlib.metadata.version("zigzag-dse"),
    "seconds": seconds, "cycles": latency, "energy_pj": energy,
}))
"""
"""What ZigZag's interpreter runs: JSON on its last line."""


def theirs(python: Path) -> dict[str, Any]:
    """ZigZag's figures, by the interpreter that has it."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(python), "-c", THEIRS, folder]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ZigZag failed: {(done.stderr.strip() or 'silently').splitlines()[-1]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(mapper: str, designs: int, repeats: int) -> float:
    """CPU seconds of a point of a study on ResNet-18, stored: the least of several."""
    import sweep_measurements as measure

    space = measure.priced_space("resnet18", mapper)
    search = measure.Search(method="random", designs=designs)
    measure.run(space, measure.Search(method="random", designs=4))
    return measure.least(lambda: measure.run(space, search), repeats) / designs


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 if the target is not met, 2 if ZigZag does not run."""
    parser = argparse.ArgumentParser(description="ZigZag beside a study, CPU per (design, network)")
    parser.add_argument("--zigzag", type=Path, required=True, help="a Python that has zigzag-dse")
    parser.add_argument("--designs", type=int, default=1000, help="of our study, default 1000")
    parser.add_argument("--repeats", type=int, default=3, help="of our study, default 3")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        peer = theirs(options.zigzag)
    except (OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 2
    seconds = {name: ours(name, options.designs, options.repeats) for name in ("rough", "fast")}
    ratios = {name: peer["seconds"] / one for name, one in seconds.items()}
    if options.json:
        about = {"load": os.getloadavg()[0], "designs": options.designs}
        print(json.dumps({"zigzag": peer, "seconds": seconds, "ratio": ratios, **about}, indent=2))
    else:
        print(
            f"ResNet-18: ZigZag {peer['version']} {peer['seconds']:.1f} s of CPU "
            f"({peer['cycles']:,.0f} cycles, {peer['energy_pj'] / 1e9:.3f} mJ on its tpu_like); "
            f"target {TARGET:,} ×"
        )
        for name, one in seconds.items():
            print(f"a study of ours, stored, by {name}: {one * 1e3:.2f} ms, {ratios[name]:,.0f} ×")
    return 0 if min(ratios.values()) >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
