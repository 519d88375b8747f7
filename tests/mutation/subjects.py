"""The small designs of every kind that mutants are tried on: each unit is in one of them.

Arrays and memories are a few words large, so that cases reach their ends; memories of one word
more than a power of two, so that an address that lacks a bit is seen where cases fill them, which
they do accumulators and memories of operands that keep words as they are (`rtl.full_memories`);
sums so narrow that they wrap.
"""

from pathlib import Path

from tests.mutation.trial import Subject

FOUND = Path(__file__).with_name("found")
"""What is known of faults: `KIND-SIDE.jsonl`, a line a fault."""

REACHED = "reached.json"
"""There, of every design: how far cases reach (`tests.mutation.reached`)."""


def _memories(ifmap: int, weight: int, accumulator: int) -> str:
    """Bytes of the scratchpads."""
    sizes = {"ifmap": ifmap, "weight": weight, "accumulator": accumulator}
    return " ".join(f"{name}_memory.capacity_bytes={size}" for name, size in sizes.items())


def _each(*settings: str) -> str:
    """Of the scratchpads of both operands."""
    return " ".join(f"{name}_memory.{one}" for name in ("ifmap", "weight") for one in settings)


_BOVEDA = _each("kind=boveda", "group=2", "unit_words=4")


def _designs(name: str, *settings: str) -> tuple[Subject, ...]:
    return tuple(Subject(design=name, settings=tuple(one.split())) for one in settings)


SUBJECTS: dict[str, tuple[Subject, ...]] = {
    "systolic": _designs(
        "edge-16",
        f"rows=4 columns=3 accumulator_bits=17 {_memories(1032, 774, 829)}",
        f"rows=3 columns=4 dataflow=output_stationary accumulator_bits=18 "
        f"{_memories(1032, 1032, 594)}",
        f"rows=4 columns=2 dataflow=input_stationary {_memories(1032, 1032, 1040)} {_BOVEDA}",
        f"rows=3 columns=2 pipelined_control=true {_memories(1024, 1024, 1024)} "
        "ifmap_memory.kind=faulty ifmap_memory.rate=0.01 weight_memory.kind=faulty "
        "weight_memory.rate=0.003 weight_memory.kind=secded",
    ),
    "tensorcore": _designs(
        "volta",
        f"octets=1 rows=4 {_memories(2064, 2080, 4160)}",
        f"octets=1 rows=4 group_columns=2 operand=int8 accumulator=int32 "
        f"{_memories(1032, 1032, 2080)} {_BOVEDA}",
    ),
    "vsq": _designs(
        "vsq-16",
        f"lanes=2 vector=4 hold_cycles=3 {_memories(710, 1290, 1040)}",
        f"lanes=3 vector=3 hold_cycles=4 gated=true scale_product_bits=4 collector_bits=16 "
        f"activation_signed=false {_memories(581, 780, 792)}",
    ),
    "scnn": _designs(
        "scnn",
        "grid_rows=2 grid_columns=2 weight_lanes=2 ifmap_lanes=2 banks=8 iaram_bytes=512 "
        "oaram_bytes=512 weight_fifo_vectors=13",
        "grid_rows=1 grid_columns=2 weight_lanes=2 ifmap_lanes=2 banks=4 iaram_bytes=400 "
        "oaram_bytes=400 bank_queue=2 activation_memory.kind=boveda activation_memory.group=2",
    ),
    "scnn with registers": _designs(
        "scnn",
        "grid_rows=1 grid_columns=2 weight_lanes=2 ifmap_lanes=2 banks=4 iaram_bytes=400 "
        "oaram_bytes=400 weight_fifo_vectors=7 pipelined_pes=true",
        "grid_rows=2 grid_columns=1 weight_lanes=3 ifmap_lanes=1 banks=2 iaram_bytes=400 "
        "oaram_bytes=400 bank_queue=1 weight_fifo_vectors=13 pipelined_pes=true",
    ),
    "sparsetrain": _designs(
        "sparsetrain",
        "pes=2 lanes=4 rows=6 columns=8 depth=3",
        "pes=4 lanes=2 rows=5 columns=8 depth=2 look_ahead=1 look_aside=2 move_work=false "
        "operand_bits=4 accumulator_bits=9 row_memory.kind=parity",
        "pes=2 lanes=4 segments=2 rows=4 columns=8 depth=7 look_ahead=1 look_aside=1",
    ),
    "sparsetrain in BF16": _designs(
        "sparsetrain",
        "pes=2 lanes=4 rows=6 columns=8 depth=3 operand=bf16 operand_bits=16",
        "pes=2 lanes=4 segments=2 rows=4 columns=8 depth=5 look_ahead=1 look_aside=1 operand=bf16 "
        "operand_bits=16",
    ),
    "gather unit": _designs(
        "edge-16",
        f"rows=4 columns=3 gather_units=40 {_memories(1024, 1024, 1536)}",
    ),
    "output registers": _designs(
        "edge-16",
        f"rows=3 columns=4 output_registers=1 product_registers=1 {_memories(1024, 1024, 1536)}",
        f"rows=3 columns=2 output_registers=2 product_registers=2 {_memories(1024, 1024, 1024)}",
    ),
    "faulty cells": _designs(
        "edge-16",
        f"rows=3 columns=2 {_memories(1024, 1024, 1024)} {_BOVEDA} "
        f"{_each('kind=faulty', 'rate=0.003')}",
        f"rows=4 columns=2 {_memories(1024, 1024, 1024)} {_each('kind=faulty', 'rate=0.01')} "
        "weight_memory.kind=secded bias_memory.kind=faulty bias_memory.rate=0.01 "
        "bias_memory.kind=parity bias_memory.data_bits=32 accumulator_memory.kind=faulty "
        "accumulator_memory.rate=0.003",
    ),
    "scnn with faulty cells": _designs(
        "scnn",
        "grid_rows=1 grid_columns=2 weight_lanes=2 ifmap_lanes=2 banks=4 iaram_bytes=100 "
        "oaram_bytes=100 weight_fifo_vectors=7 operand_bits=8 index_bits=2 "
        "activation_memory.kind=faulty activation_memory.rate=0.03 weight_memory.kind=faulty "
        "weight_memory.rate=0.01 weight_memory.kind=secded weight_memory.data_bits=20 "
        "accumulator_memory.kind=faulty accumulator_memory.rate=0.003",
        "grid_rows=2 grid_columns=1 weight_lanes=1 ifmap_lanes=3 banks=4 iaram_bytes=100 "
        "oaram_bytes=60 weight_fifo_vectors=5 operand_bits=8 index_bits=2 "
        "activation_memory.kind=faulty activation_memory.rate=0.03 activation_memory.kind=secded "
        "activation_memory.data_bits=20 weight_memory.kind=faulty weight_memory.rate=0.01",
        "grid_rows=1 grid_columns=2 weight_lanes=1 ifmap_lanes=4 banks=4 iaram_bytes=60 "
        "oaram_bytes=30 weight_fifo_vectors=5 operand_bits=8 index_bits=2 "
        "activation_memory.kind=boveda activation_memory.group=2 activation_memory.kind=faulty "
        "activation_memory.rate=0.02",
    ),
}

ALSO: dict[str, tuple[Subject, ...]] = {
    "systolic": _designs(
        "edge-16",
        f"rows=3 columns=4 {_memories(1024, 1024, 1536)} accumulator_memory.kind=faulty "
        "accumulator_memory.rate=0.003",
    ),
    "scnn": _designs(
        "scnn",
        "grid_rows=1 grid_columns=2 weight_lanes=4 ifmap_lanes=2 banks=32 iaram_bytes=200 "
        "oaram_bytes=200 weight_fifo_vectors=7 bank_queue=1",
    ),
    "vsq": _designs(
        "vsq-16",
        f"lanes=2 vector=4 {_memories(710, 1290, 1040)} ifmap_memory.kind=faulty "
        "ifmap_memory.rate=0.01 weight_memory.kind=faulty weight_memory.rate=0.003",
    ),
    "sparsetrain": _designs(
        "sparsetrain",
        "pes=2 lanes=4 rows=10 columns=16 depth=3 row_scratchpad=24 column_scratchpad=40",
    ),
}
"""What faults in the model are tried on besides: with sums that fail; with banks that fill several
words of the model's backlog, and memories that cut layers into strips; with operands that fail;
with scratchpads in the loaders."""

UNITS: dict[str, tuple[str, ...]] = {
    "sparsetrain in BF16": ("rtl.core.float_*", "rtl.core.train_*", "rtl.core.dot_product*"),
    "gather unit": (
        "rtl.core.gather*", "rtl.core.loader", "archsim.gather", "archsim.tiled.gathered*",
    ),
    "output registers": (
        "rtl.core.*output*", "rtl.core.requantize", "rtl.core.wide_product", "rtl.core.pe",
        "rtl.core.*array", "archsim.machines.systolic.*",
    ),
    "scnn with registers": (
        "rtl.core.elastic", "rtl.core.scnn_fetched", "rtl.core.scnn_sending",
        "rtl.core.scnn_pipelined_pe", "rtl.core.scnn_fifo", "rtl.core.scnn_halo",
        "rtl.core.scnn_weights", "rtl.core.scnn_drain", "rtl.core.scnn_pool",
    ),
    "faulty cells": ("rtl.memories.*", "archsim.memories.*"),
    "scnn with faulty cells": (
        "rtl.memories.*", "rtl.core.scnn_cells", "rtl.core.scnn_memories", "rtl.core.scnn_fifo",
        "rtl.core.scnn_compress", "rtl.core.stream_*", "archsim.memories.*",
        "archsim.machines.scnn.*failing*", "archsim.machines.scnn.changed*",
        "archsim.machines.scnn.seen*", "archsim.machines.scnn.few*", "archsim.machines.scnn.sum*",
    ),
}  # fmt: skip
"""Modules, `*` standing for any part, of those whose designs are there for some units alone."""


def units_of(kind: str) -> tuple[str, ...]:
    """Modules that faults are put into."""
    return UNITS.get(kind, ("*",))
