"""Units that every core has proved, for all inputs and in every cycle; each proof finds a fault.

By induction over the cycles, or over all inputs where there is no register: what cases cannot reach
where counters are wide.  Sizes are small, and the units are the same text at any.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from faulty_module import faulty_module
from float_proofs import FloatRoundProof
from unit_proofs import (
    ArbiterProof,
    CountdownProof,
    CreditsProof,
    LeadingZerosProof,
    LoaderProof,
    PackerProof,
    PopulationCountProof,
    Prove,
    QueueProof,
    RoundingProof,
    WideProductProof,
    always,
)

from archsim.arithmetic.float_datapath import FloatDatapath, FloatRules
from archsim.arithmetic.formats import FloatFormat
from archsim.codecs.vector_output import VectorOutput
from archsim.codecs.vsquant import VectorFormat
from archsim.machines.scnn.design import Scnn
from rtl.core import (
    countdown,
    credits,
    float_round,
    loader,
    output_packer,
    pipelined_output,
    population_count,
    queue,
    scnn_arbiter,
    vector_requantize,
    wide_product,
)
from rtl.core import requantize as requantize_unit
from rtl.formal import prove_combinational


def requantize(accumulator_bits: int, operand_bits: int) -> Prove:
    widths = {"accumulator_bits": accumulator_bits, "operand_bits": operand_bits}
    high = (1 << (operand_bits - 1)) - 1
    return always(
        RoundingProof, 3, make=lambda unit: unit.Requantize(**widths),
        bits=(accumulator_bits, 16), limits=(-high - 1, high), cycles=(1, 2, 2),
        out=lambda unit: unit.o,
    )  # fmt: skip


def registered(accumulator_bits: int, operand_bits: int, registers: int) -> Prove:
    widths = {"accumulator_bits": accumulator_bits, "operand_bits": operand_bits}
    high = (1 << (operand_bits - 1)) - 1
    return always(
        RoundingProof, 3 + registers,
        make=lambda unit: unit.PipelinedRequantize(**widths, registers=registers),
        bits=(accumulator_bits, 16), limits=(-high - 1, high),
        cycles=(2 - registers, 2, 2),
        out=lambda unit: unit.o, registers=1, wide=registers > 1,
    )  # fmt: skip


def multiplied(bits: tuple[int, int], widest: int) -> Prove:
    return always(WideProductProof, 4, bits=bits, widest=widest)


def rescale(sum_bits: int, bits: int, signed: bool) -> Prove:
    form = VectorFormat(bits=bits, signed=signed, vector=2, scale_bits=3)
    output = VectorOutput(form=form, lanes=2, sum_bits=sum_bits, multiplier_bits=4)
    return always(
        RoundingProof, 3, make=lambda unit: unit.ChannelRescale(output=output),
        bits=(sum_bits, 4), limits=(output.low, output.high), cycles=(0, 2, 2),
        out=lambda unit: unit.z.as_signed() if signed else unit.z,
    )  # fmt: skip


def arbiter(queue_places: int, banks: int = 2) -> Prove:
    design = Scnn(
        grid_rows=1, grid_columns=1, weight_lanes=2, ifmap_lanes=2, banks=banks, bank_entries=4,
        operand_bits=4, accumulator_bits=8, bank_queue=queue_places,
    )  # fmt: skip
    return always(ArbiterProof, 2, design=design)


def rounded(rounding: Any, subnormal: bool, fraction_bits: int) -> Prove:
    datapath = FloatDatapath(
        length=1,
        operand=FloatFormat(exponent_bits=2, fraction_bits=1),
        accumulator=FloatFormat(exponent_bits=3, fraction_bits=2),
        rules=FloatRules(rounding=rounding, subnormal_outputs=subnormal,
                         aligned_fraction_bits=fraction_bits),
    )  # fmt: skip
    return lambda unit: prove_combinational(FloatRoundProof(unit, datapath=datapath))


PROOFS: dict[str, tuple[Any, Prove]] = {
    **{f"queue of {n}": (queue, always(QueueProof, depth=n)) for n in (1, 2, 3, 4, 7)},
    **{
        f"headed queue of {n}": (queue, always(QueueProof, depth=n, headed=True))
        for n in (1, 2, 3, 4)
    },
    **{
        f"credits, {initial} of {limit}": (
            credits, always(CreditsProof, initial=initial, limit=limit)
        )
        for initial, limit in ((0, 1), (0, 2), (2, 2), (5, 13))
    },
    **{
        f"credits ahead, {initial} of {limit}": (
            credits, always(CreditsProof, initial=initial, limit=limit, ahead=True)
        )
        for initial, limit in ((0, 1), (0, 2), (2, 2), (4, 4))
    },
    **{
        f"countdown{' ahead' * ahead}, {bits} bits": (
            countdown, always(CountdownProof, bits=bits, ahead=ahead)
        )
        for bits, ahead in ((4, False), (1, True), (2, True), (4, True), (24, True))
    },
    **{f"loader, halves of {n}": (loader, always(LoaderProof, depth=n)) for n in (1, 2, 5, 8)},
    **{
        f"loader ahead, halves of {n}": (loader, always(LoaderProof, depth=n, ahead=True))
        for n in (1, 2, 5, 8)
    },
    **{f"packer of {n}": (output_packer, always(PackerProof, 3, units=n)) for n in (1, 2, 3, 4)},
    **{
        f"packer ahead of {n}": (output_packer, always(PackerProof, 3, units=n, ahead=True))
        for n in (1, 2, 3, 4)
    },
    **{f"arbiter, queues of {n}": (scnn_arbiter, arbiter(n)) for n in (1, 2, 3)},
    "arbiter, 4 banks": (scnn_arbiter, arbiter(2, 4)),
    "requantise, 3 bits to 2": (requantize_unit, requantize(3, 2)),
    "requantise, 8 bits to 4": (requantize_unit, requantize(8, 4)),
    "requantise, 32 bits to 8, as it is built": (requantize_unit, requantize(32, 8)),
    "requantise with a register, 3 bits to 2": (pipelined_output, registered(3, 2, 1)),
    "requantise with a register, 8 bits to 4": (pipelined_output, registered(8, 4, 1)),
    "requantise with two, 8 bits to 4": (pipelined_output, registered(8, 4, 2)),
    "requantise with two, 32 bits to 8": (pipelined_output, registered(32, 8, 2)),
    "requantise with two, 40 bits to 16": (pipelined_output, registered(40, 16, 2)),
    **{
        f"product of {bits[0]} bits by {bits[1]} in parts of {widest}": (
            wide_product, multiplied(bits, widest)
        )
        for bits, widest in (((4, 3), 4), ((5, 2), 4), ((7, 3), 4), ((8, 2), 4), ((9, 3), 5))
    },
    "rescale": (vector_requantize, rescale(6, 3, True)),
    "rescale to unsigned": (vector_requantize, rescale(6, 3, False)),
    **{
        f"leading zeros of {n}": (
            float_round, lambda unit, n=n: prove_combinational(LeadingZerosProof(unit, bits=n))
        )
        for n in (1, 2, 5, 13, 32)
    },
    **{
        f"rounded, {rounding}, {'with' if subnormal else 'without'} subnormals, {bits} bits": (
            float_round, rounded(rounding, subnormal, bits)
        )
        for rounding in ("nearest_even", "truncate")
        for subnormal in (True, False)
        for bits in (1, 4)
    },
    **{
        f"population count of {n}": (
            population_count, always(PopulationCountProof, 4, bits=n)
        )
        for n in (1, 3, 33)
    },
}  # fmt: skip

FAULTS: dict[str, tuple[str, str, str]] = {
    "refused though there is room": ("queue of 3", "i.ready.eq(store.w_rdy)",
                                     "i.ready.eq(store.w_rdy & ~store.r_rdy)"),
    "a queue one shallower": ("queue of 3", "depth=self.depth)", "depth=self.depth - 1)"),
    "a word taken twice": ("queue of 2", "store.r_en.eq(self.o.ready)",
                           "store.r_en.eq(self.o.ready & ~self.i.valid)"),
    "a first word lost": ("headed queue of 1", "If(~filled | self.o.ready)", "If(1)"),
    "a first word that stays": ("headed queue of 2", "If(self.o.ready & store.r_rdy)",
                                "If(~filled & self.o.ready & store.r_rdy)"),
    "a word before those that wait": ("headed queue of 3", "(store.r_rdy | ~self.o.ready)",
                                      "~self.o.ready"),
    "a word twice": ("headed queue of 3", "comes & filled & (store", "comes & (store"),
    "a headed queue one shallower": ("headed queue of 4", "depth=self.depth - 1)",
                                     "depth=self.depth - 2)"),
    "a credit lost when one comes and one goes": ("credits, 0 of 2",
        "self.give & ~self.take, self.take & ~self.give", "self.give & ~self.take, self.take"),
    "a credit too many at first": ("credits, 5 of 13", "init=initial", "init=initial + 1"),
    "a last credit that is not seen ahead": ("credits ahead, 2 of 2", "Mux(less, count != 1",
                                             "Mux(less, count != 0"),
    "a first credit that is not seen ahead": ("credits ahead, 0 of 2", "Mux(more, 1",
                                              "Mux(more, count != 0"),
    "credits at reset that are not seen ahead": ("credits ahead, 2 of 2", "init=self.initial != 0",
                                                 "init=0"),
    "a counter of credits too narrow": ("credits, 5 of 13", "range(limit + 1)", "range(limit - 5)"),
    "the first address is not 0": ("loader, halves of 5", "self.write_address.eq(0)",
                                   "self.write_address.eq(1)"),
    "words before a half is free": ("loader, halves of 2", "some & free_halves.available", "some"),
    "a tile that ends a word early": ("loader, halves of 5", "self.write & last",
                                      "self.write & (left == 2)"),
    "words ahead before a half is free": ("loader ahead, halves of 5",
                                          "some & free_halves.available", "some"),
    "a word ahead that is not counted": ("loader ahead, halves of 5", "turn=self.write",
                                         "turn=self.loaded"),
    "words ahead of a tile before it is taken": ("loader ahead, halves of 5", "start=starts",
                                                 "start=self.command.valid"),
    "turns left behind the last": ("countdown ahead, 4 bits", "some.eq(~last)", "some.eq(1)"),
    "a last turn that is seen late": ("countdown ahead, 4 bits", "left == 2", "left == 1"),
    "a single turn that is not seen": ("countdown ahead, 1 bits", "last.eq(count == 1)",
                                       "last.eq(0)"),
    "no turns taken for some": ("countdown ahead, 24 bits", "some.eq(count != 0)", "some.eq(1)"),
    "a last turn of none": ("countdown, 4 bits", "left == 1", "left <= 1"),
    "a word behind a half's end": ("loader, halves of 5", "range(max(depth, 2))",
                                   "range(max(depth, 2) - 1)"),
    "a word complete one unit late": ("packer of 3", "total >= self.word", "total > self.word"),
    "a row ahead that fits taken for one that does not": (
        "packer ahead of 3", "self.following_units >= self.word", "self.following_units > self.word"
    ),
    "a full row not known to complete a word": ("packer ahead of 3", "self.full | fits", "fits"),
    "the row before not counted": ("packer ahead of 4", "Mux(self.take, following, position)",
                                   "position"),
    "what begins not looked at": ("packer ahead of 4", "self.take | self.begins", "self.take"),
    "places kept behind a flush": ("packer of 3", "position.eq(0)", "position.eq(position)"),
    "a flush not filled with zeros": ("packer of 3", "Mux(at.flush, 0, turn.o", "Mux(0, 0, turn.o"),
    "what is beyond a word lost": ("packer of 3", "Mux(at.complete, turn.o, self.word)",
                                   "self.word"),
    "later products first": ("arbiter, queues of 1", "waiting[:number], banks[: number * width]",
                             "waiting[number + 1 :], banks[(number + 1) * width :]"),
    "a place that is taken": ("arbiter, queues of 2", "taken = [*own.o]", "pass"),
    "an output behind the region": ("arbiter, queues of 1", "row < self.rows", "row <= self.rows"),
    "a pair that ends with a product left": ("arbiter, queues of 2", "waiting == granted",
                                             "(waiting & granted) != 0"),
    "ties of negative values away from zero": (
        "requantise, 8 bits to 4", "(product + half) >> self.shift",
        "(product + half - (product < 0)) >> self.shift",
    ),
    "half a unit at a shift of 0": ("requantise, 3 bits to 2", "(1 << self.shift) >> 1",
                                    "((1 << self.shift) + 1) >> 1"),
    "a sum without its carry": ("requantise, 3 bits to 2", "signed(self.accumulator_bits + 1))",
                                "signed(self.accumulator_bits))"),
    "a product a bit too narrow": ("requantise, 8 bits to 4", "+ 1 + MULTIPLIER_BITS))",
                                   "+ MULTIPLIER_BITS))"),
    "no limit above": ("requantise, 8 bits to 4", "rounded > high", "rounded > 2 * high"),
    "ReLU of the lowest": ("requantise, 8 bits to 4", "(rounded < 0) & relu",
                           "(rounded < -1) & relu"),
    "the bit that rounds left out": ("requantise with a register, 3 bits to 2",
                                     "lowest[1:] + lowest[0]", "lowest[1:]"),
    "ReLU of the row before": ("requantise with a register, 3 bits to 2", "cycles=self.registers)",
                               "cycles=self.registers + 1)"),
    "a register too many": ("requantise with a register, 8 bits to 4", "self.registers > 1",
                            "self.registers"),
    "no limit above one that is rounded up": ("requantise with a register, 8 bits to 4",
                                              "beyond | rounded[-1]", "beyond"),
    "no limit below": ("requantise with two, 8 bits to 4", "with m.Elif(beyond):",
                       "with m.Elif(0):"),
    "limits of what is one bit too narrow": ("requantise with two, 32 bits to 8", "doubled[bits:]",
                                             "doubled[bits - 1:]"),
    "limits of what is one bit too wide": ("requantise with two, 40 bits to 16", "doubled[bits:]",
                                           "doubled[bits + 1:]"),
    "every negative number a limit": ("requantise with two, 8 bits to 4",
                                      "upper.any() & ~upper.all()", "upper.any()"),
    "ReLU of no number": ("requantise with two, 32 bits to 8", "with m.If(relu):",
                          "with m.If(0):"),
    "the lowest part taken for signed": ("product of 7 bits by 3 in parts of 4",
                                         "as_signed() if highest else cut", "as_signed()"),
    "a part a place too high": ("product of 8 bits by 2 in parts of 4", "product >> part",
                                "product >> (part - 1)"),
    "parts as wide as a factor": ("product of 8 bits by 2 in parts of 4",
                                  "factor_bits(self.parts)", "factor_bits(self.parts) - 1"),
    "the bits of a factor that is unsigned": ("product of 5 bits by 2 in parts of 4",
                                              "len(self.b) + 1", "len(self.b)"),
    "halves dropped": ("rescale", "(halves + 1) >> 1", "halves >> 1"),
    "a lowest value too low": ("rescale", "rounded < output.low", "rounded < output.low - 1"),
    "the upper half always looked at": ("leading zeros of 13",
                                        "Mux(empty, rest[:half], rest[half:])",
                                        "rest[half:]"),
    "ties to odd numbers": ("rounded, nearest_even, with subnormals, 4 bits", "half & (odd |",
                            "half & (~odd |"),
    "what is below half a unit rounded up": ("rounded, nearest_even, without subnormals, 4 bits",
                                             "half & (odd |", "(half | odd) & (half |"),
    "a subnormal taken for a normal number": ("rounded, truncate, with subnormals, 1 bits",
                                              "Mux(wanted < room, wanted, room)", "wanted"),
    "no infinity": ("rounded, nearest_even, with subnormals, 1 bits",
                    "Mux(pattern > form.infinity, form.infinity, pattern)", "pattern"),
    "a small number kept": ("rounded, truncate, without subnormals, 4 bits",
                            "if not rules.subnormal_outputs:", "if False:"),
    "a group of ones left out": ("population count of 33", "register.eq(sum_of(group))",
                                 "register.eq(sum_of(group[:31]))"),
}  # fmt: skip
"""What is wrong; a proof, what the unit says, and what it says instead."""


@pytest.mark.parametrize("name", PROOFS)
def test_proved(name: str) -> None:
    unit, prove = PROOFS[name]
    assert prove(unit).proved


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_not_proved(fault: str, tmp_path: Path) -> None:
    """Inputs are found that break a claim, or no step of the induction succeeds."""
    name, said, instead = FAULTS[fault]
    unit, prove = PROOFS[name]
    assert not prove(faulty_module(unit, tmp_path, (said, instead))).proved


def test_every_unit_has_a_fault() -> None:
    units = {PROOFS[name][0] for name, _, _ in FAULTS.values()}
    assert units == {unit for unit, _ in PROOFS.values()}
