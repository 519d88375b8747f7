"""What a reader of a result must know of its operands: how they came about, and from where."""

from __future__ import annotations

from collections import Counter

from archsim.result import NetworkResult
from workloads.counts import counted
from workloads.file_scaling import CORE_RULE, RULE


def operand_notes(result: NetworkResult) -> list[str]:
    """A line for each scheme, then what is drawn, then what a quantised file's integers became."""
    schemes = {layer.operands for layer in result.layers if layer.operands != "none"}
    return [*sorted(schemes), *_origin_notes(result), *_file_notes(result)]


def _origin_notes(result: NetworkResult) -> list[str]:
    """Where weights and activations are not from the same: what a reader must not overlook."""
    matrix = [layer for layer in result.layers if layer.operands != "none"]
    own = [layer for layer in matrix if layer.weight_origin == "file"]
    drawn = [layer for layer in matrix if layer.ifmap_origin == "drawn"]
    if not drawn:
        return []
    matters = "; cycles depend on them" if result.timed_by_values else ""
    if own:
        return [
            f"of {counted(len(matrix), 'layer')}, {len(own)} have weights of the file; "
            f"activations of {len(drawn)} are drawn, as no input is given{matters}"
        ]
    if not matters:
        return []
    return [f"operands of {counted(len(drawn), 'layer')} are drawn, as none are given{matters}"]


def _file_notes(result: NetworkResult) -> list[str]:
    """Of a quantised file's integers: how many others make otherwise, and why the core would."""
    layers = [layer.as_file for layer in result.layers if layer.as_file]
    if not layers:
        return []
    line = (
        f"ofmaps of {counted(len(layers), 'layer')} are the file's integers ({RULE}; or its sums)"
    )
    made = [(one.values, one.unlike_runtime) for one in layers if one.unlike_runtime is not None]
    if made:
        line += f"; ONNX Runtime made {_share(made)} otherwise"
    lines = [line]
    compared = [(one.values, one.differing) for one in layers if one.differing is not None]
    if compared:
        lines.append(f"the core's rule ({CORE_RULE}) makes {_share(compared)} otherwise")
    lacks = Counter(lack for one in layers for lack in one.lacks)
    if lacks:
        said = ", ".join(f"{name} ({count})" for name, count in lacks.items())
        lines.append(f"what this core lacks to make them, in how many layers: {said}")
    return lines


def _share(counts: list[tuple[int, int]]) -> str:
    """How many of the layers' values: 5 of 6,176 (0.081 %)."""
    values, others = (sum(one) for one in zip(*counts, strict=True))
    return f"{others:,} of {values:,} ({100 * others / max(values, 1):.3g} %)"


__all__ = ["operand_notes"]
