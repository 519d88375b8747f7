"""Small networks from a few lines of the built-in networks' notation."""

from workloads.layers import Network
from workloads.notation import Builder


def written(text, shape=(2, 3, 8, 8), *, normalised=False) -> Network:
    """normalised: a convolution's bias is a batch normalisation that was folded into it."""
    builder = Builder(shape=shape, blocks={}, where="text", normalised=normalised)
    builder.read(text, {})
    return Network(
        name="text", layers=tuple(builder.layers), source="a test", flow=tuple(builder.flow)
    )
