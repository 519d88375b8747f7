"""What crosses the ports of a core for a layer, as words of whole bytes: the layout in memory.

A host, a DMA engine or a test bench gives each input port its words in this order, and finds the
ofmap's in that of the output port; which element lies in which lane of which word is told by the
design's contract (`docs/contracts/`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from archsim.machine.design import Design
from archsim.machine.model import MatrixLayer

__all__ = ["port_words"]


def port_words(design: Design, layer: MatrixLayer, operands: Any) -> dict[str, NDArray[np.uint8]]:
    """By port, words [n, bytes]: lane 0 in the lowest bits, the lowest byte first, 0 above.

    operands: of the design's intake; the layer is in its automatic mapping.  The outputs' words are
    what the core must give.  Raises `InputError` for a layer that the machine cannot compute.
    """
    model = design.machine_model()
    transfers = model.answer(layer, operands, model.taken({})).transfers
    return {port.name: port.pack(transfers[port.name].payload) for port in model.ports}
