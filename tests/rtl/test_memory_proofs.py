"""What every kind of memory proves of its hardware holds; the proofs that are new here find faults.

Those of Boveda: `test_boveda_formal`.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from composed_memories import forget
from faulty_module import faulty_module
from plugin_packages import example_module, example_site, installed

from archsim.errors import InputError
from archsim.plugins import plugins
from rtl.core import scnn_memories, sram, stream_packer, stream_unpacker
from rtl.core.memory import GROUP, proofs_of
from rtl.formal import Proof, prove_for_cycles
from rtl.memories import plain, read_back
from rtl.memories.boveda_stream import proofs as stream_proofs

KINDS = sorted(plugins(GROUP))
BY_NAME = {
    (kind, proof.name): proof for kind in KINDS for proof in proofs_of(*kind.split(".", maxsplit=1))
}


def test_every_kind_of_ours_brings_proofs() -> None:
    assert {"scratchpad.plain", "scratchpad.boveda", "stream.boveda"} < set(KINDS)
    assert {kind for kind, _ in BY_NAME} == set(KINDS)
    for (kind, _), proof in BY_NAME.items():
        assert proof.says, kind


@pytest.mark.parametrize(
    "proof",
    [
        pytest.param(proof, id=f"{kind}: {name}", marks=[pytest.mark.slow] if proof.slow else [])
        for (kind, name), proof in BY_NAME.items()
    ],
)
def test_what_a_kind_says_is_proved(proof: Proof) -> None:
    assert proof.prove().proved, proof.says


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder whose packages are found, as if they were installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    forget()


def test_so_are_those_of_packages(site: Path) -> None:
    example_site(site)
    forget()
    ours, theirs = set(KINDS), set(plugins(GROUP))
    assert "scratchpad.registers" in theirs
    for kind in theirs - ours:
        found = proofs_of(*kind.split(".", maxsplit=1))
        assert found, kind
        assert all(proof.prove().proved for proof in found), kind


PACKAGE = """
from rtl.formal import Proof, Verdict
from rtl.memories.plain import PlainScratchpadRtl

class Inherits(PlainScratchpadRtl):
    pass

class Twice(PlainScratchpadRtl):
    @staticmethod
    def proofs():
        one = Proof(name="one", says="", prove=lambda: Verdict(answer="proved", cycles=None))
        return [one, one]
"""


def test_proofs_are_of_ones_own_hardware_and_have_names(site: Path) -> None:
    (site / "kinds_with_proofs.py").write_text(PACKAGE)
    names = {
        f"scratchpad.{one.lower()}": f"kinds_with_proofs:{one}" for one in ("Inherits", "Twice")
    }
    installed(site, "kinds", {GROUP: names})
    forget()
    assert proofs_of("scratchpad", "inherits") == ()
    with pytest.raises(InputError, match=r"scratchpad\.twice has two proofs of one name: one$"):
        proofs_of("scratchpad", "twice")
    with pytest.raises(InputError, match=r"no RTL is known for the memory bank\.none"):
        proofs_of("bank", "none")


def _read_back(**more: Any) -> Any:
    return lambda: read_back.ReadBackProof(bits=2, depth=3, **more)


def _exchanged() -> Any:
    return read_back.ExchangedProof(read_back.small_scnn(2, 3))


def _stream() -> Any:
    return stream_proofs.StreamProof(groups=3)


FAULTS: dict[str, tuple[ModuleType, tuple[str, str], ModuleType, str, Any]] = {
    "not transparent": (
        sram, ("(write,) if self.transparent else ()", "()"), read_back, "Sram",
        lambda: read_back.ReadBackProof(bits=2, depth=3, transparent=True, bank=read_back.Sram),
    ),
    "a bit stuck": (
        sram, ("write.data.eq(self.write_data)", "write.data.eq(self.write_data | 1)"),
        read_back, "Sram",
        lambda: read_back.ReadBackProof(bits=2, depth=3, bank=read_back.Sram),
    ),
    "both halves written": (
        plain, ("self.write & (self.write_half == half)", "self.write"),
        read_back, "PlainScratchpad", _read_back(halves_in=2),
    ),
    "the half chosen too early": (
        plain, ("m.d.sync += selected.eq(self.read_half)",
                "m.d.comb += selected.eq(self.read_half)"),
        read_back, "PlainScratchpad", _read_back(halves_in=2),
    ),
    "both halves where one is": (
        plain, ("Cat(self.write_address, self.write_half)", "self.write_address"),
        read_back, "JoinedScratchpad", _read_back(halves_in=1),
    ),
    "the other half read": (
        plain, ("Cat(self.read_address, self.read_half)",
                "Cat(self.read_address, ~self.read_half)"),
        read_back, "JoinedScratchpad", _read_back(halves_in=1),
    ),
    "the second half begins too low": (
        plain, ("Cat(self.write_address, self.write_half)",
                "self.write_address + Mux(self.write_half, self.depth, 0)"),
        read_back, "JoinedScratchpad", _read_back(halves_in=1),
    ),
    "both memories written by one port": (
        scnn_memories, ("Mux(self.exchanged, other.write, own.write)", "own.write"),
        read_back, "ActivationMemories", _exchanged,
    ),
    "not transparent to an exchanged port": (
        scnn_memories, ('{"transparent": True}', '{"transparent": False}'),
        read_back, "ActivationMemories", _exchanged,
    ),
    "a row begun is forgotten": (
        stream_packer, ("Mux(full, high, low)", "Mux(full, 0, low)"),
        stream_proofs, "StreamPacker", _stream,
    ),
    "the last row is not written": (
        stream_packer, ("Mux(self.flush, p != 0, self.append & full)", "self.append & full"),
        stream_proofs, "StreamPacker", _stream,
    ),
    "the pointer stays for the next content": (
        stream_packer, ("[p.eq(0), row.eq(0), begun.eq(0)]", "[row.eq(0), begun.eq(0)]"),
        stream_proofs, "StreamPacker", _stream,
    ),
    "the even bank a row late": (
        stream_unpacker, ("(next_row + 1)[1:]", "next_row[1:]"),
        stream_proofs, "StreamUnpacker", _stream,
    ),
    "the last group gives up no row": (
        stream_unpacker, ("end[-1] + (self.last & end[:-1].any())", "end[-1]"),
        stream_proofs, "StreamUnpacker", _stream,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_refuted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, fault, where, unit, proof = FAULTS[name]
    faulty = getattr(faulty_module(module, tmp_path, fault), unit)
    monkeypatch.setattr(where, unit, faulty)
    assert prove_for_cycles(proof(), 8).answer == "refuted"


def test_a_fault_of_the_packages_memory_is_refuted(tmp_path: Path) -> None:
    registers = example_module("registers_rtl")
    fault = ("self.write_address == number", "self.write_address == number | 1")
    bank = faulty_module(registers, tmp_path, fault).RegisterBank
    proof = read_back.ReadBackProof(bits=2, depth=3, halves_in=2, bank=bank, cells=registers.cells)
    assert prove_for_cycles(proof, 5).answer == "refuted"
