"""Names of boards: known ones, and what is said of those that nothing is built for."""

from pathlib import Path

import pytest
from amaranth_boards.tang_mega_138k_pro_dock import TangMega138kProDockPlatform
from command_line import Call

from archsim.errors import InputError
from fpga import nextpnr
from fpga.boards import BOARDS, LACKING, board_named
from fpga.devices import DEVICES, Target
from fpga.nextpnr import require_packer
from rtl.toolchain import ToolchainError


def test_a_short_name_and_a_wrong_one() -> None:
    assert board_named("ulx3s") == BOARDS["ulx3s-85k"]
    with pytest.raises(InputError, match=r"not 'icebraker'; .*icebreaker"):
        board_named("icebraker")
    with pytest.raises(InputError, match=r"not 'tang-nano-9'; .*tang-nano-9k"):
        board_named("tang-nano-9")


@pytest.mark.parametrize("board", BOARDS.values(), ids=lambda one: one.name)
def test_a_board_is_what_amaranth_boards_says(board: object) -> None:
    """Its part is the chip that cells are counted for, its clock the one that is divided."""
    where = BOARDS[getattr(board, "name")]  # noqa: B009
    platform = where.open()
    assert platform.default_clk_constraint.frequency == where.clock_hz
    if where.chip.family == "gowin":
        placement = dict(zip(where.chip.placement[::2], where.chip.placement[1::2], strict=True))
        assert placement["--device"] == platform.part
        assert placement["--vopt"] == f"family={platform._chipdb_device}"
        assert where.chip.synthesis == ("-family", platform.series[:4].lower())


def test_what_is_said_to_lack_does() -> None:
    with pytest.raises(ValueError, match="part name is invalid"):
        TangMega138kProDockPlatform()
    with pytest.raises(InputError, match=r"GW5AST-138.*must be one of .*tang-nano-9k") as caught:
        board_named(*LACKING)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("verb", ["build", "fit"])
def test_the_command_says_it_and_leaves_nothing(archsim: Call, verb: str, tmp_path: Path) -> None:
    output = ["-o", str(tmp_path / "board")] if verb == "build" else []
    said = archsim("fpga", verb, "edge-16", "--board", "tang-mega-138k", *output)
    assert said.code == 2
    assert "GW5AST-138" in said.err
    assert said.err.count("\n") == 1
    assert not [*tmp_path.iterdir()]


def test_a_missing_packer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nextpnr.importlib.util, "find_spec", lambda name: None)
    require_packer("ecp5")
    with pytest.raises(ToolchainError, match="apycula is missing; install it with: pip install"):
        require_packer("gowin")


def test_every_gowin_chip_names_four_pins() -> None:
    for chip in DEVICES.values():
        target = Target(family=chip.family, device=chip.name)
        assert len(set(target.chip.pins)) == (4 if chip.family == "gowin" else 0)
