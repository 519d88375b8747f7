"""Rows of `archsim paper boveda` of which nothing is published: ours, in every number format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from archsim.compression import Kind
from archsim.papers.boveda_footprint import First, Share, chosen, counted
from archsim.papers.boveda_gains import energies, gains
from archsim.papers.boveda_machines import MACHINES, Step
from archsim.papers.boveda_schemes import Scheme, schemes
from archsim.papers.boveda_scnn import Words, drawn_words, photograph_words, total
from archsim.papers.boveda_tensors import NAMES, TITLES, Name, real_tensors
from archsim.papers.figures import Figure, Progress, Row, unpublished
from archsim.papers.scnn_layers import NETWORKS

STATES = {False: "dense", True: "pruned"}

KINDS: Mapping[str, tuple[Kind | None, First]] = {
    "weights": ("weights", "as it is"),
    "activations": ("activations", "as it is"),
    "both": (None, "as it is"),
    "activations, conv1 folded": ("activations", "folded"),
    "both, conv1 folded": (None, "folded"),
    "both, without conv1": (None, "without"),
}
"""Rows of a table of footprints; the last three only where there is a layer to fold."""

SPARSE_SCHEMES = ("tensor-16", "fixed", "dnnsim", "profiled", "strict")


def footprint_rows(name: Name, *, pruned: bool) -> Iterator[Row]:
    """Every number format, by kind of tensor."""
    narrow = any(one.first for one in counted(name, _any(name), pruned=pruned, folded=False))
    for scheme in schemes(name).values():
        group = f"{TITLES[name]}, {STATES[pruned]}, {scheme.title}{_points(scheme)}"
        for label, (kind, first) in KINDS.items():
            if first == "as it is" or narrow:
                share = chosen(name, scheme, pruned=pruned, kind=kind, first=first)
                figure = _ours(group, label, "ours: bits of Boveda over containers")
                yield figure.row(share.boveda, _beside(share))


def _any(name: Name) -> Scheme:
    return schemes(name)["tensor-8"]


def _points(scheme: Scheme) -> str:
    if scheme.fractions is None:
        return ""
    weights, activations = scheme.fractions
    return f" (fraction: weights {weights}, activations {activations} bits)"


def _beside(share: Share) -> str:
    """The same without widths and pointers, and the other codecs."""
    shapeshifter, layer, zeros, entropy = (share.others[codec] for codec in share.others)
    return (
        f"bare {share.bare:.0f}, of it padding {share.padding:.0f}; ShapeShifter "
        f"{shapeshifter:.0f}, per layer {layer:.0f}, zero-run {zeros:.0f}, entropy {entropy:.0f}"
    )


def _ours(group: str, label: str, source: str) -> Figure:
    return unpublished(key=f"{group}: {label}", group=group, figure=label, unit="%", source=source)


def sparse_words(progress: Progress) -> dict[tuple[str, str], Words]:
    """Words of four of (network, number format), weights and activations together."""
    known = schemes("photographs")
    found = {
        ("SqueezeNet", key): total(photograph_words(known[key]).values()) for key in SPARSE_SCHEMES
    }
    for network in NETWORKS:
        progress(f"{network}: drawn values")
        for key in ("tensor-16", "profiled", "strict"):
            found[network, key] = total(drawn_words(network, limits(key)).values())
    return found


def limits(key: str) -> tuple[int, int]:
    """Largest magnitudes, 2^n - 1, of as many bits as SqueezeNet's integers have in a format."""
    scheme, bits = schemes("photographs")[key], {"weights": 0, "activations": 0}
    for one in real_tensors("photographs"):
        largest = int(abs(scheme.integers(one).astype(int)).max())
        bits[one.kind] = max(bits[one.kind], largest.bit_length())
    return (1 << bits["weights"]) - 1, (1 << bits["activations"]) - 1


def sparse_rows(sparse: Mapping[tuple[str, str], Words]) -> Iterator[Row]:
    group = "SCNN, saved on top of zero compression, an index a value (an index a word)"
    for (network, key), words in sparse.items():
        real = network == "SqueezeNet"
        label = f"{network}: {schemes('photographs')[key].title if real else _drawn_title(key)}"
        remark = f"index a word {words.reduction('word'):.1f}; mean width {words.mean_width:.1f}"
        figure = _ours(group, label, "ours: SCNN's lists, 16-bit containers")
        yield figure.row(words.reduction("value"), remark)


def _drawn_title(key: str) -> str:
    weights, activations = (largest.bit_length() for largest in limits(key))
    return f"drawn, magnitudes of {weights} (weights), {activations} bits"


def layer_records() -> Iterator[dict[str, Any]]:
    for name in NAMES:
        for pruned, state in STATES.items():
            for scheme in schemes(name).values():
                at = {"network": TITLES[name], "state": state, "format": scheme.name}
                for one in counted(name, scheme, pruned=pruned, folded=False):
                    yield at | one.record()


def machine_rows(machine: str, steps: Sequence[Step]) -> Iterator[Row]:
    """Off-chip traffic at every size of a sweep."""
    group = (
        f"SqueezeNet on {machine}: off-chip traffic with compressed memories, of plain ones of as "
        "many bytes"
    )
    for step, gain in zip(steps, gains(steps), strict=True):
        figure = _ours(group, f"{step.kibibytes} KiB each", "ours: simulated, interpolated")
        remark = f"{step.plain.off_chip_bytes / 1e6:.2f} MB plainly; cycles {gain.cycles:+.1f} %"
        if gain.size is not None:
            more = "more" if gain.size > 0 else "less"
            remark += f"; as little traffic with {abs(gain.size):.0f} % {more} memory"
        if gain.memories is not None and gain.total is not None:
            remark += f"; {energies(gain.memories, gain.total)}"
        yield figure.row(100 + gain.off_chip, remark)


__all__ = [
    "KINDS",
    "MACHINES",
    "SPARSE_SCHEMES",
    "STATES",
    "footprint_rows",
    "layer_records",
    "limits",
    "machine_rows",
    "sparse_rows",
    "sparse_words",
]
