"""The notation in which the built-in networks are written.

One line makes one layer: `NAME = OPERATOR ARGUMENTS [from TENSOR ...]`. It reads the tensor of
the line before, or those named after `from`; its result bears its name. Shapes flow from the
network's input and are never repeated. `#` opens a comment.

    conv K RxS [/STRIDE] [+PAD] [groups=G | depthwise] [bias] [relu]    NCHW
    fc N [bias] [relu]             flattens all but the batch axis
    linear N [bias] [relu] [dropout]    on the last axis, the others are rows
    product BATCH M N K SHAPE      BATCH products of two computed operands
    maxpool RxS [/STRIDE] [+PAD] [ceil], avgpool (the same), globalpool
    add, concat                    two or more tensors; concat along axis 1
    lrn SIZE                       local response normalisation
    lstm H [both], gru H [both]    on [steps, batch, inputs]; both: a second, reverse direction
    embed WIDTH                    a table look-up: appends an axis
    reshape SHAPE                  names a new shape, makes no layer
    OPERATOR                       any element-wise or normalising ONNX operator: Relu, Softmax ...

`A..B` in a name repeats the line for each number. `NAME = @BLOCK key=value ... [from TENSOR]`
places the lines of a block: {name} is NAME, {in} its input tensor, {channels} that tensor's
second axis, {key} the value; the result of the block's last line bears NAME. A number may be a
sum or product: 4*{width}, 1+{patches}. A SHAPE is numbers joined by commas. `dropout`
marks what training drops units of before it is read, as it does before every recurrent layer.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from workloads.errors import WorkloadError
from workloads.flow import INPUT, Node
from workloads.layers import Conv2d, Layer
from workloads.notation_operators import Shape, make_layers, operator_name, pool_of
from workloads.pooling import Feed, MaxPool

_RANGE = re.compile(r"(\d+)\.\.(\d+)")


class Builder:
    """Reads lines of the notation, keeps the shapes of the tensors, collects the layers."""

    def __init__(
        self, *, shape: Shape, blocks: Mapping[str, str], where: str, normalised: bool = False
    ) -> None:
        """Begin at the tensor `input` of `shape`; `where` opens the messages of errors.

        normalised: a convolution's bias is a batch normalisation that was folded into it.
        """
        self.layers: list[Layer] = []
        self.flow: list[Node] = []
        self._normalised = normalised
        self._where = where
        self._blocks = blocks
        self._tensors: dict[str, Shape] = {INPUT: shape}
        self._current = INPUT
        self._aliases: dict[str, str] = {}
        self._reads: list[tuple[str, str]] = []
        self._pools: dict[str, tuple[str, MaxPool]] = {}

    def feeds(self) -> tuple[Feed, ...]:
        """Which convolution's ofmap is another one's ifmap, in the order of the lines."""
        convolutions = {layer.name for layer in self.layers if isinstance(layer, Conv2d)}
        readers = Counter(source for source, _ in self._reads)
        found: list[Feed] = []
        for tensor, target in self._reads:
            source, pool = self._pools.get(tensor, (tensor, None))
            alone = readers[tensor] == readers[source] == 1
            if alone and {source, target} <= convolutions:
                name = tensor if pool else ""
                found.append(Feed(source=source, target=target, pool=pool, pool_layer=name))
        return tuple(found)

    def read(self, text: str, values: Mapping[str, str | int]) -> None:
        """Add the layers of `text`, with each {key} replaced by its value.

        Raises WorkloadError which quotes the line.
        """
        for line in text.splitlines():
            line = line.partition("#")[0].strip()
            if line:
                try:
                    self._read_line(_fill(line, values))
                except (WorkloadError, ValueError, IndexError) as error:
                    raise WorkloadError(f"{self._where}: in line {line!r}: {error}") from error

    def _read_line(self, line: str) -> None:
        names, equals, rest = line.partition(" = ")
        if not equals:
            raise WorkloadError("a line must read NAME = OPERATOR ARGUMENTS")
        words, _, sources = rest.partition(" from ")
        for name in _expand(names.strip()):
            inputs = sources.split() or [self._current]
            operator, *arguments = words.split()
            if operator.startswith("@"):
                self._place(name, operator[1:], arguments, inputs[0])
            else:
                self._tensors[name] = self._make(name, operator, arguments, inputs)
                self._current = name

    def _place(self, name: str, block: str, arguments: list[str], source: str) -> None:
        if block not in self._blocks:
            raise WorkloadError(f"no block is named {block!r}; there are {sorted(self._blocks)}")
        shape = self._shape(source)
        values: dict[str, str | int] = {"name": name, "in": source}
        if len(shape) > 1:
            values["channels"] = shape[1]
        for argument in arguments:
            key, _, value = argument.partition("=")
            values[key] = value
        self._current = source
        self.read(self._blocks[block], values)
        self._tensors[name] = self._tensors[self._current]
        self._aliases[name] = self._real(self._current)
        self._current = name

    def _shape(self, tensor: str) -> Shape:
        if tensor not in self._tensors:
            raise WorkloadError(f"no tensor is named {tensor!r} before this line")
        return self._tensors[tensor]

    def _real(self, tensor: str) -> str:
        """The tensor that a block's name stands for."""
        return self._aliases.get(tensor, tensor)

    def _make(self, name: str, operator: str, arguments: list[str], inputs: list[str]) -> Shape:
        shapes = [self._shape(tensor) for tensor in inputs]
        layers, result = make_layers(name, operator, arguments, shapes)
        self.layers += layers
        sources = [self._real(tensor) for tensor in inputs]
        self._reads += [(source, name) for source in sources]
        pool = pool_of(operator, arguments)
        if pool is not None and operator == "maxpool":
            self._pools[name] = sources[0], pool
        self.flow.append(
            Node(
                name=name,
                operator=operator_name(operator),
                reads=tuple(sources),
                shape=result,
                layers=tuple(layer.name for layer in layers),
                relu="relu" in arguments,
                dropout="dropout" in arguments,
                normalised=self._normalised and operator == "conv" and "bias" in arguments,
                pool=pool,
            )
        )
        return result


def _fill(line: str, values: Mapping[str, str | int]) -> str:
    try:
        return line.format_map(values)
    except KeyError as error:
        raise WorkloadError(f"no value is given for {{{error.args[0]}}}") from error


def _expand(name: str) -> list[str]:
    found = _RANGE.search(name)
    if not found:
        return [name]
    first, last = int(found[1]), int(found[2])
    return [f"{name[: found.start()]}{i}{name[found.end() :]}" for i in range(first, last + 1)]
