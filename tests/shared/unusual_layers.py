"""Layers of shapes that trouble a core: one, primes, one more than a multiple, all padding."""

from workloads.layers import Conv2d, MatMul

UNUSUAL_LAYERS = (
    MatMul(name="one", m=1, n=1, k=1, bias=True),
    MatMul(name="k of one", m=9, n=5, k=1),
    MatMul(name="one more than a multiple", m=9, n=9, k=9, bias=True, relu=True),
    MatMul(name="attention", m=5, n=7, k=6, batch=3, shared_weight=False),
    Conv2d(
        name="depthwise, stride 2", channels=3, filters=3, ifmap_height=7, ifmap_width=8,
        kernel_height=3, kernel_width=3, stride_height=2, stride_width=2, pad_top=1, pad_left=1,
        pad_bottom=1, pad_right=1, groups=3, bias=True, relu=True,
    ),
    Conv2d(
        name="pointwise, stride 2", channels=9, filters=5, ifmap_height=5, ifmap_width=5,
        kernel_height=1, kernel_width=1, stride_height=2, stride_width=2, batch=2,
    ),
    Conv2d(
        name="dilated, all padding at a corner", channels=2, filters=5, ifmap_height=4,
        ifmap_width=3, kernel_height=3, kernel_width=2, pad_top=4, pad_left=3, pad_bottom=4,
        pad_right=3, dilation_height=2, dilation_width=2,
    ),
    Conv2d(
        name="stride beyond the kernel", channels=3, filters=4, ifmap_height=9, ifmap_width=9,
        kernel_height=2, kernel_width=2, stride_height=4, stride_width=5,
    ),
)  # fmt: skip
