"""Codecs to compare Boveda with: the bits that each takes for a tensor, as it was published.

All see the tensor as `boveda.encode` does: channels last, units by the first `aligned_axes` axes,
groups of G values along the last axis.  Each passes over the values once.  Counted is what the
source counts, so not all give random access: `CODECS` says in a line what each is.

raw             B · values.
zero-run        (B + 4) · elements: a value that is not zero with 4 bits of the run of zeros before
                it, and a placeholder for every 16 zeros of a longer run, in lists of one unit each
                (Parashar et al., "SCNN", ISCA 2017, where B is 16).
scnn-dnnsim     4 + 4 · B for every 4 values that are not zero, in order, units apart: DNNsim's
                account of SCNN's activations (`SCNN::on_chip_cycles`, in its history), one field
                of 4 bits for four values.  An account, not a code that could be read.
scnn-widths     4 + log2 B + 4 · w for the same fours: there, Boveda's widths on top of SCNN.
zero-bits       1 · values + B · (values not zero).
per-layer       Proteus (Judd et al., ICS 2016): all values as wide as the tensor's widest, in
                Boveda's columns and with its alignment; nothing else is stored.
shapeshifter    Lascorz et al., MICRO 2019, as DNNsim counts it: per group log2 B + the lesser of
                G + w · (values not zero) and G · w; which of both is not stored.
bdi-32, bdi-64  base-delta-immediate (Pekhimenko et al., PACT 2012, table 2): lines of 32 or 64
                bytes; zeros 1 byte, repeated 8 bytes 8, words of k bytes as one base and
                differences of d bytes, each from the base or from zero, k + d · line / k bytes for
                (k, d) = (8, 1), (8, 2), (8, 4), (4, 1), (4, 2), (2, 1), else the line; and 4 bits a
                line that say which.  Flags of words that count from zero are not counted there,
                nor here.
fpc             frequent pattern compression (Alameldeen and Wood, technical report 1500, University
                of Wisconsin-Madison, 2004, table 1): words of 32 bits in lines of 64 bytes, 3 bits
                of prefix and 3 (up to 8 words of zeros), 4, 8 or 16 (sign-extended), 16 (upper half
                only; two sign-extended bytes in halves), 8 (a repeated byte) or 32 bits.
entropy         the least that any code for one value after another takes:
                ⌈- sum over values of count · log2(count / values)⌉, without its table.
boveda          `boveda.footprint` with plain metadata.

Bytes are little-endian, values of 4 bits two a byte, the first in the lower half; a last line or
word that is short is filled with zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from archsim.codecs import reference_kernels as kernels
from archsim.codecs.boveda import footprint, group_widths
from archsim.codecs.boveda_format import BovedaFormat, Bytes, Places, Values, places_of
from archsim.numbers import ceil_div

SCNN_LANES = 4
RUN_BITS = 4
ENCODING_BITS = 4

Bits = Callable[[npt.NDArray[Any], int, bool, int, int], int]
"""Of values [..., channels], B, signed, aligned axes, G.  Raises InputError as `encode`."""


@dataclass(frozen=True, kw_only=True)
class Codec:
    """A codec's account: `bits(values, container_bits, signed, aligned_axes, group)`.

    source: of what is counted; empty where it needs none.
    """

    bits: Bits
    title: str
    source: str


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tensor:
    """Values that fit their format, and where their groups lie."""

    values: Values
    form: BovedaFormat
    places: Places

    @property
    def flat(self) -> Values:
        return self.values.reshape(-1)

    @property
    def unit_values(self) -> int:
        return self.values.size // self.places.units

    @property
    def not_zero(self) -> int:
        return int(np.count_nonzero(self.values))

    @property
    def bytes(self) -> Bytes:
        """As they lie in memory: module docstring."""
        if self.form.container_bits > 4:
            little = self.form.value_type.newbyteorder("<")
            return np.asarray(self.flat, little).view(np.uint8)
        halves: Bytes = self.flat.view(np.uint8) & np.uint8(15)
        if len(halves) % 2:
            halves = np.append(halves, np.uint8(0))
        return halves[::2] | (halves[1::2] << np.uint8(4))

    def words(self, size: int, line: int) -> npt.NDArray[np.signedinteger[Any]]:
        """Of `size` bytes, as many as fill lines of `line` bytes."""
        data = self.bytes
        short = -len(data) % line
        data = np.pad(data, (0, short)) if short else np.ascontiguousarray(data)
        return data.view(f"<i{size}")


def _tensor(
    values: npt.NDArray[Any], container_bits: int, signed: bool, aligned_axes: int, group: int
) -> _Tensor:
    form = BovedaFormat(group=group, container_bits=container_bits, signed=signed)
    places = places_of(values.shape, aligned_axes, group)
    return _Tensor(values=form.fitting(values), form=form, places=places)


def _raw(x: _Tensor) -> int:
    return x.values.size * x.form.container_bits


def _zero_run(x: _Tensor) -> int:
    elements = kernels.zero_run_elements(x.flat, x.unit_values)
    return elements * (x.form.container_bits + RUN_BITS)


def _packed(x: _Tensor) -> tuple[int, int]:
    """Fours of values that are not zero, and the sum of their widths."""
    answer = np.zeros(2, np.int64)
    form = SCNN_LANES, *x.form.numbers[1:]
    kernels.packed_widths(x.flat, x.unit_values, form, answer)
    return int(answer[0]), int(answer[1])


def _scnn_dnnsim(x: _Tensor) -> int:
    return _packed(x)[0] * (RUN_BITS + SCNN_LANES * x.form.container_bits)


def _scnn_widths(x: _Tensor) -> int:
    vectors, widths = _packed(x)
    return vectors * (RUN_BITS + x.form.field_bits) + SCNN_LANES * widths


def _zero_bits(x: _Tensor) -> int:
    return x.values.size + x.not_zero * x.form.container_bits


def _per_layer(x: _Tensor) -> int:
    width = int(group_widths(x.values, x.form).max())
    rows = ceil_div(x.places.unit_groups * width, x.form.container_bits)
    return rows * x.places.units * x.form.group * x.form.container_bits


def _shapeshifter(x: _Tensor) -> int:
    line = x.values.shape[-1], x.places.line_groups
    return kernels.shapeshifter_bits(x.flat, line, x.form.numbers, x.form.field_bits)


def _base_delta(x: _Tensor, line: int) -> int:
    eights, fours, twos = (x.words(size, line).reshape(-1, line // size) for size in (8, 4, 2))
    return 8 * kernels.base_delta_bytes(eights, fours, twos) + ENCODING_BITS * len(eights)


def _bdi_32(x: _Tensor) -> int:
    return _base_delta(x, 32)


def _bdi_64(x: _Tensor) -> int:
    return _base_delta(x, 64)


def _fpc(x: _Tensor) -> int:
    return kernels.frequent_pattern_bits(x.words(4, 4))


def _entropy(x: _Tensor) -> int:
    least, largest = x.form.limits
    counts = np.zeros(largest - least + 1, np.int64)
    kernels.histogram(x.flat, least, counts)
    found = counts[counts > 0].astype(np.float64)
    return ceil(float(found @ np.log2(x.values.size / found)))


def _boveda(x: _Tensor) -> int:
    """Alignment is of units, which `places` number."""
    units = x.values.reshape(x.places.units, -1, x.values.shape[-1])
    return footprint(units, x.form, aligned_axes=1).total_bits


def _of(count: Callable[[_Tensor], int], title: str, source: str) -> Codec:
    def bits(
        values: npt.NDArray[Any], container_bits: int, signed: bool, aligned_axes: int, group: int
    ) -> int:
        return count(_tensor(values, container_bits, signed, aligned_axes, group))

    return Codec(bits=bits, title=title, source=source)


CODECS: dict[str, Codec] = {
    "raw": _of(_raw, "containers as they are", ""),
    "boveda": _of(_boveda, "a width for each group, virtual columns", "Edo et al., MLSys 2021"),
    "shapeshifter": _of(
        _shapeshifter, "a width for each group, zeros left out", "Lascorz et al., MICRO 2019"
    ),
    "per-layer": _of(_per_layer, "one width for the tensor", "Proteus: Judd et al., ICS 2016"),
    "zero-bits": _of(_zero_bits, "a bit for each value, and those not zero", ""),
    "zero-run": _of(_zero_run, "values not zero, 4 bits of run", "SCNN: Parashar, ISCA 2017"),
    "scnn-dnnsim": _of(_scnn_dnnsim, "4 bits of run for four values not zero", "SCNN in DNNsim"),
    "scnn-widths": _of(_scnn_widths, "the same, and a width for the four", "SCNN in DNNsim"),
    "bdi-32": _of(_bdi_32, "base and differences, 32-byte lines", "Pekhimenko, PACT 2012"),
    "bdi-64": _of(_bdi_64, "base and differences, 64-byte lines", "Pekhimenko, PACT 2012"),
    "fpc": _of(_fpc, "frequent patterns of 32-bit words", "Alameldeen and Wood, 2004"),
    "entropy": _of(_entropy, "limit of codes for single values", "Shannon 1948"),
}
"""What can be compared, the stored form first."""
