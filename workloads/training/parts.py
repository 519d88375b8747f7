"""The layers of a pass of a forward layer: one, of a stride several, smaller ones where a whole
batch lacks the same units."""

from __future__ import annotations

from workloads.layers import Conv2d, MatMul
from workloads.training.compacted import compacted
from workloads.training.dropout import Site
from workloads.training.input_gradient import input_gradient
from workloads.training.pass_layer import Forward, Pass, PassLayer
from workloads.training.weight_gradient import Form, weight_gradient


def pass_layers(
    kind: Pass, layer: Conv2d | MatMul, site: Site | None = None, form: Form = "product"
) -> tuple[PassLayer, ...]:
    """site: what the layer reads with units dropped; None where it reads all.  form: of WG."""
    if site is not None and site.dropout.compacts and isinstance(layer, MatMul):
        return compacted(layer, site, kind)
    if kind == "FP":
        return (Forward(kind="FP", of=layer, layer=layer),)
    return input_gradient(layer) if kind == "BP" else (weight_gradient(layer, form),)


__all__ = ["pass_layers"]
