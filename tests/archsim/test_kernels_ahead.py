"""`python -m archsim.kernels`: all kernels are compiled before anything runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from archsim.kernels import not_compiled, store
from archsim.kernels.__main__ import entries, main
from archsim.machine.registry import registered


def test_it_compiles_what_every_machine_needs() -> None:
    said = subprocess.run([sys.executable, "-m", "archsim.kernels"], capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert f"{len(entries())} kernels are kept in {store.kernel_folder()}" in said.stderr
    assert not_compiled(entries()) == []
    for design in registered().values():
        for many in (False, True):
            assert not_compiled(design.machine_model().kernels({}, many=many)) == []


def test_kernels_of_several_types_are_left_to_those_who_call_them() -> None:
    names = {one.name for one in entries()}
    assert "archsim.tiled.near.near_tiling" in names
    assert "archsim.codecs.reference_kernels.histogram" not in names  # ??.1,int,i8.1
    assert all("?" not in (one.declared or "?") for one in entries())


def test_where_nothing_can_be_kept_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kernels").write_text("", encoding="utf-8")
    monkeypatch.setenv(store.CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setattr("sys.argv", ["python -m archsim.kernels"])
    assert main() == 2
    said = capsys.readouterr().err
    assert said == f"archsim: nothing can be kept in {tmp_path / 'kernels'}\n"
