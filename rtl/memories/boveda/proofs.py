"""The proofs that compressed scratchpads bring: of their shifters, and of both directions."""

from collections.abc import Iterator

from rtl.formal import Proof, prove_always, prove_combinational
from rtl.memories.boveda.pack_proof import Format, PackProof
from rtl.memories.boveda.round_trip_proof import RoundTripProof

FAST_ROW_BITS = 32
"""Bits of the largest row of which a proof of the shifters takes seconds."""


def shifters() -> Iterator[Proof]:
    """All values of all lanes, all pointers, any bits of other groups beside them."""
    for group in (1, 4):
        for bits in (4, 8, 16):
            for signed in (True, False):
                for zero_width in (False, True):
                    form = Format(
                        group=group, container_bits=bits, signed=signed, zero_width=zero_width
                    )
                    yield Proof(
                        name=f"unpack undoes pack, {_said(form)}",
                        says="Unpack(Pack(x, p) among any bits of other groups) = x, Pack sets "
                        f"only its own bits, and the width is the least: {_said(form)}",
                        prove=lambda form=form: prove_combinational(PackProof(form)),
                        slow=group * bits > FAST_ROW_BITS,
                    )


def both_directions() -> Iterator[Proof]:
    """By induction over one cycle: no bound on the cycles, the groups or the lengths of units."""
    for group, bits, signed, zero_width, queue, slow in (
        (1, 4, True, False, 4, False),
        (3, 4, False, False, 1, False),
        (1, 4, True, True, 1, False),
        (2, 8, True, False, 1, False),
        (1, 4, False, False, 4, True),
        (4, 4, True, False, 4, True),
        (1, 4, False, True, 4, True),
        (4, 8, True, False, 2, True),
        (1, 16, True, False, 1, True),
        (1, 8, True, False, 8, True),  # about seven minutes
    ):
        form = Format(group=group, container_bits=bits, signed=signed, zero_width=zero_width)
        sizes = f"{_said(form)}, room for {queue} widths"
        yield Proof(
            name=f"round trip, {sizes}",
            says="compressor into decompressor, any stalls, for ever: the n-th group out is the "
            f"n-th in, and rows are bit for bit those that the widths call for: {sizes}",
            prove=lambda form=form, queue=queue: prove_always(RoundTripProof(form, queue=queue)),
            slow=slow,
        )


def _said(form: Format) -> str:
    signed = "signed" if form.signed else "unsigned"
    zero = ", zero width" if form.zero_width else ""
    return f"{form.group} x {form.container_bits} bits, {signed}{zero}"


__all__ = ["both_directions", "shifters"]
