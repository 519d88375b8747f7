"""What a board's build is kept by."""

from pathlib import Path

from archsim.machines.systolic.design import Systolic
from archsim.memory import Plain
from fpga.boards import board_named
from fpga.build import _work  # pyright: ignore[reportPrivateUsage]

ROOT = Path(__file__).parents[2]


def test_a_build_is_known_wherever_the_sources_lie() -> None:
    """Placing takes minutes to hours; another checkout is not to do it again."""
    memory = Plain(capacity_bytes=64)
    design = Systolic(
        rows=1, columns=1, bias_words=4,
        ifmap_memory=memory, weight_memory=memory, accumulator_memory=memory,
    )  # fmt: skip
    plan = _work(design, board_named("ulx3s-25k"), None, 115_200, lambda phase: None).plan
    for name, content in plan.files.items():
        text = content if isinstance(content, str) else content.decode()
        assert str(ROOT) not in text, name
