"""The measurements of `sweep_study.py`."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from speed_report import Row

from archsim import EDGE_16, simulate_many
from archsim.errors import InputError
from archsim.layer.intake import Drawing
from archsim.machines.scnn.design import SCNN_4PE
from archsim.numbers import IntArray
from archsim.sweeps import MachineSpace, Search, Space, Study
from archsim.sweeps import running as sweep_running
from archsim.sweeps.evaluation import Evaluator, Outcome
from archsim.sweeps.points import Grid
from archsim.sweeps.running import Ran
from archsim.sweeps.workers import Here
from workloads.layers import Conv2d, Network
from workloads.threads import set_threads

set_threads(1)

NETWORK = "resnet50"


def grid_space(designs: int) -> Space:
    """Designs around edge-16: 20 × 20 array sizes × capacities × bandwidths."""
    fields = {
        "rows": {"from": 4, "to": 80, "step": 4},
        "columns": {"from": 4, "to": 80, "step": 4},
        "ifmap_memory.capacity_bytes": {"powers_of_two": [1 << 14, 1 << 18]},
        "off_chip.bytes_per_cycle": [float(one) for one in range(4, 4 + max(1, designs // 2000))],
    }
    arrays = MachineSpace(design=EDGE_16, fields=fields, mapper="rough")
    return Space(machines=(arrays,), networks=(NETWORK,))


def run(space: Space, search: Search | None = None) -> Ran:
    """A new study in this process."""
    with tempfile.TemporaryDirectory() as folder, Study.begin(folder, space) as study:
        return study.run(search or Search())


def least(work: Callable[[], object], repeats: int) -> float:
    """CPU seconds, the least of several; one before is not counted."""
    times: list[float] = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def stored(designs: int, repeats: int) -> Row:
    """A study over the bare evaluation, in turns."""
    space = grid_space(designs)
    grid = Grid(space)
    numbers = np.arange(space.design_count, dtype=np.int64)
    made = [one for one in grid.designs(numbers) if not isinstance(one, InputError)]
    network = grid.networks[0]
    simulate_many(made[:2], network, mapper="rough")
    bare: list[float] = []
    whole: list[float] = []
    for _ in range(repeats):
        bare.append(least(lambda: simulate_many(made, network, mapper="rough"), 1))
        whole.append(least(lambda: run(space), 1))
    return Row(
        name="stored",
        what=f"a study of {len(made):,} designs × ResNet-50, mapped roughly, over `simulate_many`",
        measured=min(whole) / min(bare),
        unit="×",
        target=1.3,
        better="lower",
        details={
            "bare_seconds": min(bare),
            "study_seconds": min(whole),
            "bare_designs_per_second": len(made) / min(bare),
            "study_designs_per_second": len(made) / min(whole),
        },
    )


def priced_space(network: str, mapper: str = "rough") -> Space:
    """Random arrays around edge-16: cycles, energy, area."""
    capacities = {"powers_of_two": [1 << 14, 1 << 21]}
    memories = ("ifmap_memory", "weight_memory", "accumulator_memory")
    fields = {
        "rows": {"from": 8, "to": 256},
        "columns": {"from": 8, "to": 256},
        **{f"{name}.capacity_bytes": capacities for name in memories},
    }
    return Space(
        machines=(MachineSpace(design=EDGE_16, fields=fields, mapper=mapper),),
        networks=(network,),
        objectives=("cycles", "energy", "area"),
    )


PRICED = 1000


def priced(repeats: int) -> Row:
    """Random designs with energy and area."""
    space = priced_space(NETWORK)
    search = Search(method="random", designs=PRICED)
    run(space, Search(method="random", designs=4))
    seconds = least(lambda: run(space, search), repeats)
    return Row(
        name="priced",
        what="cycles, energy, area of random designs × ResNet-50, mapped roughly, stored, one core",
        measured=PRICED / seconds,
        unit="designs/s",
        target=800,
        better="higher",
    )


def workers(repeats: int) -> Row:
    """Two processes over one, wall time."""
    conv = Conv2d(
        name="conv", channels=256, filters=256, ifmap_height=30, ifmap_width=30, kernel_height=3,
        kernel_width=3, pad_top=1, pad_left=1, pad_bottom=1, pad_right=1,
    )  # fmt: skip
    network = Network(name="conv", layers=(conv,), source="a layer like VGG-16's")
    fields = {"banks": [32, 64], "clock_hz": [1e9 + one for one in range(40)]}
    sparse = MachineSpace(design=SCNN_4PE, fields=fields, drawing=Drawing(density=0.4))
    space = Space(machines=(sparse,), networks=(network,))

    def seconds(count: int) -> float:
        with tempfile.TemporaryDirectory() as folder, Study.begin(folder, space) as study:
            return study.run(workers=count).seconds

    times = [(seconds(1), seconds(2)) for _ in range(repeats)]
    one, two = (min(column) for column in zip(*times, strict=True))
    return Row(
        name="workers",
        what="two worker processes over one, data-dependent points, wall time",
        measured=one / two,
        unit="×",
        target=1.8,
        better="higher",
        details={"one_seconds": one, "two_seconds": two, "points": space.size},
        note="of wall time: other work on the machine counts",
    )


class MadeUp(Evaluator):
    """Objectives told from numbers, at no cost."""

    def outcome(self, numbers: IntArray, network: int) -> Outcome:
        """Two objectives that trade."""
        mixed = (numbers * 2654435761 % 4294967291).astype(np.float64)
        values = {"cycles": mixed + 1e9, "footprint_bytes": 4e9 - mixed + numbers % 1000 * 1e6}
        return Outcome(numbers=numbers, network=network, values=values)


def made_up_space(points: int) -> Space:
    """Six fields; at least so many points."""
    fields = {
        "rows": {"from": 1, "to": 100},
        "columns": {"from": 1, "to": 100},
        "bias_words": {"from": 1, "to": 10},
        "dataflow": ["weight_stationary", "output_stationary"],
        "off_chip.latency_cycles": {"from": 1, "to": 5},
        "off_chip.bytes_per_cycle": {"from": 1, "to": max(1, points // 1_000_000)},
    }
    return Space(
        machines=(MachineSpace(design=EDGE_16, fields=fields, mapper="rough"),),
        networks=("alexnet",),
        objectives=("cycles", "footprint"),
    )


def rows(repeats: int) -> Row:
    """What becomes of points that cost nothing."""
    space = made_up_space(1_000_000)

    def write() -> Ran:
        with tempfile.TemporaryDirectory() as folder, Study.begin(folder, space) as study:
            search = Search(designs=200_000)
            return study.run(search, workers=Here(MadeUp(space)))

    times = [write().writer_seconds for _ in range(repeats)]
    return Row(
        name="rows",
        what="points made rows and written, six fields and two objectives, one core",
        measured=200_000 / min(times),
        unit="/s",
        target=50_000,
        better="higher",
    )


def shares(designs: int) -> Row:
    """Where the time of a study goes."""
    found = run(grid_space(designs))
    parts = {
        "sampler": found.sampler_seconds,
        "simulator": found.simulator_seconds,
        "writer": found.writer_seconds,
    }
    whole = sum(parts.values())
    return Row(
        name="shares",
        what="share of CPU in the simulator, a study of a grid × ResNet-50",
        measured=parts["simulator"] / whole * 100,
        unit="%",
        target=75,
        better="higher",
        details={name: f"{part / whole:.1%}" for name, part in parts.items()},
    )


def _resident_mib() -> float:
    """Memory of this process now."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def scale(points: int) -> Row:
    """A study of very many points."""
    space = made_up_space(points)
    sizes: dict[int, float] = {}

    def note(progress: sweep_running.Progress) -> None:
        for share in (10, 5, 2, 1):
            if progress.kept >= points // share and share not in sizes:
                sizes[share] = _resident_mib()

    with tempfile.TemporaryDirectory() as folder:
        with Study.begin(folder, space) as study:
            search = Search(designs=points)
            ran = study.run(search, workers=Here(MadeUp(space)), progress=note)
        size = sum(one.stat().st_size for one in Path(folder).iterdir())
        began = time.process_time(), time.perf_counter()
        with Study.open(folder) as study:
            opened = time.process_time() - began[0], time.perf_counter() - began[1]
            count = study.count
            began = time.process_time(), time.perf_counter()
            front = study.front()
            fronted = time.process_time() - began[0], time.perf_counter() - began[1]
    return Row(
        name="scale",
        what=f"{count:,} points kept: opening and a front of two objectives",
        measured=opened[0] + fronted[0],
        unit="s",
        target=10,
        better="lower",
        details={
            "resident_mib_at_shares_of_points": {f"1/{k}": v for k, v in sizes.items()},
            "open_cpu_seconds": opened[0],
            "open_wall_seconds": opened[1],
            "front_cpu_seconds": fronted[0],
            "front_wall_seconds": fronted[1],
            "front_points": len(front),
            "file_mib": size / 2**20,
            "written_per_second": count / ran.writer_seconds,
        },
    )
