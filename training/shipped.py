"""The models that come with archsim, and what makes them again."""

from __future__ import annotations

from collections.abc import Mapping

from training.recipe import Recipe

CHANNELS, EPOCHS, BATCH, CLIP = 8, 2, 32, 0.1
"""A quarter of the paper's MNIST network in width (69,114 weights), and 2 epochs of its 100, in
batches of a quarter."""


def _recipe(method: str, bits: int, **more: float) -> Recipe:
    fields = {
        "method": method,
        "bits": bits,
        "channels": CHANNELS,
        "epochs": EPOCHS,
        "batch": BATCH,
    }
    return Recipe(**fields, **more)  # pyright: ignore[reportArgumentType]


def _both(bits: int) -> dict[str, Recipe]:
    return {
        f"mnist-int{bits}-normal": _recipe("normal", bits),
        f"mnist-int{bits}-rquant": _recipe("rquant", bits),
        f"mnist-int{bits}-clipping": _recipe("clipping", bits, clip=CLIP),
        f"mnist-int{bits}-randbet-1": _recipe("randbet", bits, clip=CLIP, rate=0.01),
        f"mnist-int{bits}-randbet-10": _recipe("randbet", bits, clip=CLIP, rate=0.1),
    }


PATTERN_CHIP = 1000
"""Beyond the chips that tables evaluate on."""

RECIPES: Mapping[str, Recipe] = {
    **_both(8),
    **_both(4),
    "mnist-int2-clipping": _recipe("clipping", 2, clip=CLIP),
    "mnist-int2-randbet-15": _recipe("randbet", 2, clip=CLIP, rate=0.15),
    "mnist-int8-pattern-5": _recipe("pattern", 8, clip=CLIP, rate=0.05, chip=PATTERN_CHIP),
}
"""By name; the number at its end is the rate of errors in training, in per cent."""

__all__ = ["RECIPES"]
