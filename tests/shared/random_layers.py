"""Random layers and off-chip memories, small enough to be walked in many ways."""

from archsim.memory import OffChip
from rtl.cases import Draw
from workloads.layers import Conv2d

LATENCIES = (0, 1, 7, 20, 50, 100, 500, 3000)


def random_layer(draw: Draw, sizes: tuple[int, ...], depths: tuple[int, ...]) -> Conv2d:
    """A convolution of one image: any groups, stride, padding, dilation; every fourth depthwise."""
    kernel = [draw.one_of(1, 1, 3, 3, 5, 2) for _ in range(2)]
    dilation = [draw.one_of(1, 1, 1, 2) for _ in range(2)]
    pads = [draw.whole(0, kernel[axis] - 1) for axis in (0, 1, 0, 1)]
    least = [(kernel[axis] - 1) * dilation[axis] + 1 for axis in range(2)]
    depthwise = draw.chance(0.25)
    groups = draw.whole(2, 12) if depthwise else draw.one_of(1, 1, 1, 2, 3)
    channels, filters = (1, 1) if depthwise else (draw.one_of(*depths), draw.one_of(*depths))
    return Conv2d(
        name="c", channels=channels * groups, filters=filters * groups, groups=groups,
        ifmap_height=max(least[0], draw.one_of(*sizes)),
        ifmap_width=max(least[1], draw.one_of(*sizes)), kernel_height=kernel[0],
        kernel_width=kernel[1], stride_height=draw.whole(1, 3), stride_width=draw.whole(1, 3),
        pad_top=pads[0], pad_left=pads[1], pad_bottom=pads[2], pad_right=pads[3],
        dilation_height=dilation[0], dilation_width=dilation[1], bias=draw.chance(0.5),
    )  # fmt: skip


def random_off_chip(draw: Draw, latencies: tuple[int, ...]) -> OffChip:
    """Any bandwidth, from a byte in two cycles to none that matters."""
    rate = draw.one_of(1, 2, 4, 8, 16, 64) * (0.5 + draw.rng.random())
    return OffChip(
        bytes_per_cycle=0 if draw.chance(0.3) else rate,
        latency_cycles=draw.one_of(*latencies),
        burst_bytes=draw.one_of(1, 16, 64, 256),
    )
