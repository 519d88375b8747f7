"""The Python interface with sizes that no machine has: an answer or one line, within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from bounded_child import BoundedChild

ODD = (10**5, 10**7, 2**31, 2**40, 2**62, 10**30)

SHAPES = {
    "matmul": "MatMul(name='a', m={0}, n=8, k=8)",
    "wide matmul": "MatMul(name='a', m=8, n={0}, k=8)",
    "deep matmul": "MatMul(name='a', m=8, n=8, k={0})",
    "cube": "MatMul(name='a', m={0}, n={0}, k={0})",
    "batch": "MatMul(name='a', m=4, n=4, k=4, batch={0})",
    "steps": "MatMul(name='a', m=4, n=4, k=4, steps={0})",
    "plane": "Conv2d(name='a', channels=4, filters=4, ifmap_height={0}, "
    "ifmap_width={0}, kernel_height=3, kernel_width=3)",
    "kernel": "Conv2d(name='a', channels=4, filters=4, ifmap_height={0}, "
    "ifmap_width={0}, kernel_height={0}, kernel_width={0})",
    "groups": "Conv2d(name='a', channels={0}, filters={0}, groups={0}, "
    "ifmap_height=8, ifmap_width=8, kernel_height=3, kernel_width=3)",
    "padded": "Conv2d(name='a', channels=4, filters=4, ifmap_height=8, "
    "ifmap_width=8, kernel_height=3, kernel_width=3, pad_top={0}, stride_height={0})",
}

CALLS = {
    "many": "print(simulate_many(['edge-16', 'tpu-v1', 'volta'], network)[0].tolist())",
    "one": "print(simulate('edge-16', network).cycles)",
    "values": "print(simulate('edge-16', network, "
    "operands=lambda layer: synthetic(layer, density=0.5, seed=0, bits=8)).cycles)",
    "sparse": "print(simulate('scnn-4pe', network, "
    "operands=lambda layer: synthetic(layer, density=0.5, seed=0, bits=16)).cycles)",
}

CODE = """
from archsim import simulate, simulate_many
from workloads.layers import Conv2d, MatMul, Network
from workloads.operands import synthetic
network = Network(name="n", source="s", layers=({layer},))
{call}
"""


SECONDS = 300
"""Of processor time, at most: 100,000 groups of a sparse machine, a pass each, take 40 on a quiet
machine, and 120 where fifteen processes share its two cores."""


@pytest.fixture(scope="module")
def child() -> Iterator[BoundedChild]:
    with BoundedChild(seconds=SECONDS) as one:
        yield one


SAMPLE = [("many", "matmul", 2**40), ("many", "groups", 2**31), ("one", "batch", 2**62),
          ("values", "plane", 10**7),
          ("sparse", "cube", 10**5),
          ("many", "cube", 10**30)]  # fmt: skip


def check_size(call: str, shape: str, size: int, child: BoundedChild, at: Path) -> None:
    code = CODE.format(layer=SHAPES[shape].format(size), call=CALLS[call])
    ended = child.python(code, cwd=at)
    assert not ended.fault, (call, shape, size, ended)


@pytest.mark.parametrize(("call", "shape", "size"), SAMPLE)
def test_some_sizes(call: str, shape: str, size: int, child: BoundedChild, tmp_path: Path) -> None:
    check_size(call, shape, size, child, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_sizes(call: str, shape: str, child: BoundedChild, tmp_path: Path) -> None:
    for size in ODD:
        check_size(call, shape, size, child, tmp_path)


DESIGNS = (
    *((name, key, size)
      for name, key in (("edge-16", "rows"), ("edge-16", "columns"), ("scnn", "grid_rows"),
                        ("scnn", "weight_lanes"), ("volta", "octets"), ("vsq-16", "rows"),
                        ("edge-16", "ifmap_memory.capacity_bytes"), ("edge-16", "operand_bits"),
                        ("edge-16", "accumulator_rows"), ("edge-16", "command_queue"))
      for size in (0, -1, 10**5, 2**31, 2**62, 10**30)),
)  # fmt: skip


def check_designs(designs: Iterable[tuple[str, str, int]], child: BoundedChild, at: Path) -> None:
    for name, key, size in designs:
        code = (
            "from archsim import simulate_many\n"
            "from archsim.machine.registry import load_design, with_settings\n"
            f"design = with_settings(load_design({name!r}), ['{key}={size}'])\n"
            "simulate_many([design] * 3, 'alexnet')"
        )
        ended = child.python(code, cwd=at)
        assert not ended.fault, (name, key, size, ended)


def test_some_designs(child: BoundedChild, tmp_path: Path) -> None:
    check_designs(DESIGNS[::7], child, tmp_path)


@pytest.mark.slow
def test_all_designs(child: BoundedChild, tmp_path: Path) -> None:
    check_designs(DESIGNS, child, tmp_path)


@pytest.mark.slow
def test_a_hundred_thousand_designs(child: BoundedChild, tmp_path: Path) -> None:
    """One compiled pass over all of them."""
    code = "from archsim import simulate_many\nsimulate_many(['edge-16'] * 100_000, 'alexnet')"
    assert not child.python(code, cwd=tmp_path, seconds=SECONDS).fault
