"""ONNX models that no exporter makes: of hostile sizes, shapes, names and structures.

Each is a small file.  `models()` has them by name; all are to be refused in a line or read, within
bounded memory and time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
Shape = Sequence[int | str]
Node = onnx.NodeProto
ODD_SIZES = (0, -1, 3, 10**5, 10**6, 2**31, 2**40, 2**62, -(2**62), 2**63 - 1)


def floats(name: str, *shape: int) -> TensorProto:
    """An initialiser of ones."""
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


def integers(name: str, *values: int) -> TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(
    nodes: Sequence[Node],
    constants: Sequence[TensorProto] = (),
    *,
    shape: Shape = (1, 4, 8, 8),
    output: str | None = None,
    **fields: Any,
) -> onnx.ModelProto:
    """Of one input x and one output, the last node's if none is said."""
    last = output or (nodes[-1].output[0] if nodes and nodes[-1].output else "y")
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info(last, FLOAT, None)],
        list(constants),
    )
    fields.setdefault("opset_imports", [helper.make_opsetid("", 17)])
    return helper.make_model(graph, ir_version=8, **fields)


def conv(**attributes: Any) -> onnx.ModelProto:
    """A convolution of 4 channels with 6 filters of 3 × 3."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], **attributes)
    return model([node], [floats("w", 6, 4, 3, 3)])


def tensor(
    dims: Sequence[int], data: bytes = b"", kind: int = FLOAT, name: str = "w"
) -> TensorProto:
    """A tensor whose dims and data need not agree."""
    made = TensorProto(name=name, data_type=kind, dims=dims)
    made.raw_data = data
    return made


def calls(levels: int, each: int, *, endless: bool = False) -> onnx.ModelProto:
    """Functions of which each calls the next one `each` times; the last one itself, if endless."""
    functions: list[onnx.FunctionProto] = []
    for level in range(levels):
        ends = level + 1 == levels
        name = f"F{level}" if ends and endless else f"F{level + 1}"
        inner = [
            helper.make_node(
                "Relu" if ends and not endless else name,
                ["a" if not at else f"t{at - 1}"],
                [f"t{at}" if at + 1 < each else "b"],
                domain="" if ends and not endless else "mine",
            )
            for at in range(each)
        ]
        imports = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
        functions.append(helper.make_function("mine", f"F{level}", ["a"], ["b"], inner, imports))
    return model(
        [helper.make_node("F0", ["x"], ["y"], domain="mine")],
        functions=functions,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)],
    )


def loop(trips: int | None, *, constant: bool) -> onnx.ModelProto:
    """A Loop of so many steps, or without end; of constants alone, or of the input."""
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Concat", ["v", "v"], ["u"], axis=0),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("u", FLOAT, None),
        ],
    )
    constants = [numpy_helper.from_array(np.array(True), "true"), floats("w", 4, 4)]
    steps = ""
    if trips is not None:
        constants.append(numpy_helper.from_array(np.array(trips), "trips"))
        steps = "trips"
    start = "w" if constant else "x"
    nodes = [
        helper.make_node("Loop", [steps, "true", start], ["l"], body=body),
        helper.make_node("MatMul", ["x", "l"], ["y"]),
    ]
    return model(nodes, constants, shape=(4, 4))


def scan(steps: int) -> onnx.ModelProto:
    """A Scan over so many steps."""
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "v"], ["t"]), helper.make_node("Identity", ["t"], ["o"])],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, [4]) for name in ("s", "v")],
        [helper.make_tensor_value_info(name, FLOAT, [4]) for name in ("t", "o")],
    )
    node = helper.make_node("Scan", ["w", "x"], ["f", "y"], body=body, num_scan_inputs=1)
    return model([node], [floats("w", 4)], shape=(steps, 4))


def nested(depth: int) -> bytes:
    """A model with sub-graphs in sub-graphs, as bytes: no library writes it so deep."""
    inner = b""
    for _ in range(depth):
        node = _field(4, b"If") + _field(
            5, _field(1, b"then_branch") + _varint_field(20, 5) + _field(6, inner)
        )
        inner = _field(1, node)
    graph = inner + _field(2, b"g")
    return _varint_field(1, 8) + _field(7, graph) + _field(8, _field(1, b"") + _varint_field(2, 17))


def _varint(value: int) -> bytes:
    made = bytearray()
    while True:
        made.append((value & 127) | (128 if value > 127 else 0))
        value >>= 7
        if not value:
            return bytes(made)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _pool(operator: str, **attributes: Any) -> onnx.ModelProto:
    """A pooling of 2 × 2, but for what is said otherwise."""
    return model(
        [helper.make_node(operator, ["x"], ["y"], **{"kernel_shape": [2, 2], **attributes})]
    )


def attributes_of_every_size() -> dict[str, Callable[[], onnx.ModelProto]]:
    """Attributes of convolutions, poolings and others with each odd size."""
    made: dict[str, Callable[[], onnx.ModelProto]] = {}
    for name in ("kernel_shape", "strides", "dilations", "pads"):
        for size in ODD_SIZES:
            count = 4 if name == "pads" else 2
            for where, values in (("both", [size] * count), ("one", [1] * (count - 1) + [size])):
                label = f"{name} {where} {size}"
                made[f"conv {label}"] = lambda n=name, v=values: conv(**{n: v})
                made[f"pool {label}"] = lambda n=name, v=values: _pool("MaxPool", **{n: v})
        for length in (1, 3, 100):
            made[f"conv {name} of {length}"] = lambda n=name, c=length: conv(**{n: [1] * c})
            made[f"pool {name} of {length}"] = lambda n=name, c=length: _pool(
                "AveragePool", **{n: [1] * c}
            )
    for size in ODD_SIZES:
        made[f"conv group {size}"] = lambda s=size: conv(group=s)
        made[f"lrn size {size}"] = lambda s=size: _one("LRN", size=s)
        made[f"softmax axis {size}"] = lambda s=size: _one("Softmax", axis=s)
        made[f"flatten axis {size}"] = lambda s=size: _one("Flatten", axis=s)
        made[f"concat axis {size}"] = lambda s=size: model(
            [helper.make_node("Concat", ["x", "x"], ["y"], axis=s)]
        )
        made[f"transpose perm {size}"] = lambda s=size: _one("Transpose", perm=[0, 1, 2, s])
        made[f"mean axes {size}"] = lambda s=size: _one("ReduceMean", axes=[s])
        made[f"depth to space {size}"] = lambda s=size: _one("DepthToSpace", blocksize=s)
        made[f"lstm hidden {size}"] = lambda s=size: _lstm(4, 3, hidden=s)
        made[f"lstm steps {size}"] = lambda s=size: _lstm(s, 3)
        made[f"lstm batch {size}"] = lambda s=size: _lstm(4, s)
        made[f"input {size}"] = lambda s=size: model(
            [helper.make_node("Relu", ["x"], ["y"])], shape=(s, s, s)
        )
        made[f"matmul {size}"] = lambda s=size: model(
            [helper.make_node("MatMul", ["x", "w"], ["y"])], [floats("w", 4, 5)], shape=(s, 4)
        )
        made[f"conv of {size}"] = lambda s=size: model(
            [helper.make_node("Conv", ["x", "w"], ["y"])], [floats("w", 6, 4, 3, 3)],
            shape=(1, 4, s, s),
        )  # fmt: skip
    made["transpose perm twice"] = lambda: _one("Transpose", perm=[0, 1, 1, 2])
    made["transpose perm short"] = lambda: _one("Transpose", perm=[0, 1])
    return made


def _one(operator: str, **attributes: Any) -> onnx.ModelProto:
    return model([helper.make_node(operator, ["x"], ["y"], **attributes)])


def _lstm(steps: int, batch: int, *, hidden: int = 5) -> onnx.ModelProto:
    node = helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=hidden)
    weights = [floats("w", 1, 20, 6), floats("r", 1, 20, 5)]
    return model([node], weights, shape=(steps, batch, 6))


def sizes_made_of_constants() -> dict[str, Callable[[], onnx.ModelProto]]:
    """Operators that make large tensors of small constants, which importers fold."""

    def added(*nodes: Node, constants: Sequence[TensorProto]) -> onnx.ModelProto:
        last = helper.make_node("Add", ["x", "big"], ["y"])
        return model([*nodes, last], constants, shape=(1,))

    made: dict[str, Callable[[], onnx.ModelProto]] = {}
    for size in (10**7, 2**33, 2**40, 2**62):
        many = integers("n", size)
        zero = integers("zero", 0)
        scalar = [numpy_helper.from_array(np.array(value), name)
                  for name, value in (("a", 0), ("b", size), ("c", 1))]  # fmt: skip
        made[f"range {size}"] = lambda s=scalar: added(
            helper.make_node("Range", ["a", "b", "c"], ["r"]),
            helper.make_node("Cast", ["r"], ["big"], to=FLOAT),
            constants=s,
        )
        made[f"expand {size}"] = lambda n=many: added(
            helper.make_node("Expand", ["one", "n"], ["big"]), constants=[floats("one", 1), n]
        )
        made[f"tile {size}"] = lambda n=many: added(
            helper.make_node("Tile", ["one", "n"], ["big"]), constants=[floats("one", 1), n]
        )
        made[f"filled {size}"] = lambda n=many: added(
            helper.make_node("ConstantOfShape", ["n"], ["big"]), constants=[n]
        )
        made[f"pad {size}"] = lambda n=size: added(
            helper.make_node("Pad", ["one", "p"], ["big"]),
            constants=[floats("one", 1), integers("p", n, n)],
        )
        made[f"negative pad {size}"] = lambda n=size: added(
            helper.make_node("Pad", ["one", "p"], ["big"]),
            constants=[floats("one", 1), integers("p", -n, n)],
        )
        made[f"hidden fill {size}"] = lambda n=many, z=zero: added(  # its size is not inferred
            helper.make_node("Sub", ["n", "z"], ["m"]),
            helper.make_node("Abs", ["m"], ["k"]),
            helper.make_node("ConstantOfShape", ["k"], ["big"]),
            constants=[n, numpy_helper.from_array(np.array([0]), "z")],
        )
        made[f"one hot {size}"] = lambda n=size: added(
            helper.make_node("OneHot", ["i", "d", "v"], ["big"]),
            constants=[integers("i", 0), numpy_helper.from_array(np.array(n), "d"),
                       numpy_helper.from_array(np.array([0, 1], np.float32), "v")],
        )  # fmt: skip
        made[f"resize {size}"] = lambda n=many: model(
            [helper.make_node("Resize", ["x", "", "", "n"], ["y"], mode="nearest")], [n], shape=(4,)
        )
        made[f"reshape {size}"] = lambda n=many: model(
            [helper.make_node("Reshape", ["x", "n"], ["y"])], [n], shape=(4,)
        )
        made[f"slice {size}"] = lambda n=size: model(
            [helper.make_node("Slice", ["x", "s", "n"], ["y"])],
            [integers("s", -n), integers("n", n)], shape=(4,),
        )  # fmt: skip
        made[f"split {size}"] = lambda n=size: model(
            [helper.make_node("Split", ["x", "n"], ["y", "z"])], [integers("n", n, 4 - n)],
            shape=(4,),
        )  # fmt: skip
        made[f"gather {size}"] = lambda n=many: model(
            [helper.make_node("Gather", ["x", "n"], ["y"])], [n], shape=(4,)
        )
    made["concat doubles"] = lambda: model(
        [
            helper.make_node("Shape", ["x"], ["t0"]),
            *(helper.make_node("Concat", [f"t{n}", f"t{n}"], [f"t{n + 1}"], axis=0)
              for n in range(34)),
            helper.make_node("Reshape", ["x", "t34"], ["y"]),
        ],
        shape=(1,),
    )  # fmt: skip
    made["product of constants"] = lambda: model(
        [helper.make_node("Conv", ["a", "w"], ["c"]), helper.make_node("Conv", ["x", "c"], ["y"])],
        [floats("a", 1, 1, 1030, 1030), floats("w", 4, 1, 500, 500)],
        shape=(1, 4, 600, 600),
    )  # fmt: skip
    made["large products of constants"] = lambda: model(
        [
            helper.make_node("ConstantOfShape", ["s"], ["a"]),
            *(helper.make_node("MatMul", ["a" if not n else f"m{n - 1}", "a"], [f"m{n}"])
              for n in range(200)),
            helper.make_node("MatMul", ["x", "m199"], ["y"]),
        ],
        [integers("s", 8192, 8192)],
        shape=(1, 8192),
    )  # fmt: skip
    return made


def lying_tensors() -> dict[str, Callable[[], onnx.ModelProto]]:
    """Initialisers whose header says other things than they hold."""

    def weighted(weight: TensorProto) -> onnx.ModelProto:
        node = helper.make_node("MatMul", ["x", weight.name or "w"], ["y"])
        return model([node], [weight], shape=(2, 4))

    made: dict[str, Callable[[], onnx.ModelProto]] = {}
    for dims in ((4, 2**40), (4, 10**6), (2**40, 2**40), (4, -1), (-4, -5), (4, 0), (4,) * 70, ()):
        for data in (b"", bytes(80), bytes(7)):
            made[f"dims {dims!s:.40} in {len(data)} bytes"] = lambda d=dims, b=data: weighted(
                tensor(d, b)
            )
    for kind in (0, 8, 11, 15, 16, 17, 21, 22, 23, 99, 10**6):
        made[f"type {kind}"] = lambda k=kind: weighted(tensor((4, 5), bytes(80), k))
    made["float_data short"] = lambda: weighted(
        TensorProto(name="w", data_type=FLOAT, dims=(4, 5), float_data=[1.0])
    )
    made["both data"] = lambda: weighted(
        TensorProto(name="w", data_type=FLOAT, dims=(1, 1), float_data=[1.0], raw_data=bytes(4))
    )
    made["strings"] = lambda: weighted(
        TensorProto(name="w", data_type=8, dims=(4, 5), string_data=[b"\xff"] * 20)
    )
    made["empty name"] = lambda: weighted(tensor((4, 5), bytes(80), name=""))
    made["external"] = lambda: _external("/etc/passwd")
    made["external device"] = lambda: _external("/dev/zero")
    made["external parent"] = lambda: _external("../../etc/passwd")
    made["external absent"] = lambda: _external("absent.bin")
    made["external nul"] = lambda: _external("a\0b")
    made["external self"] = lambda: _external("m.onnx", length=10**15)
    made["external before"] = lambda: _external("m.onnx", offset=-5)
    made["external words"] = lambda: _external("m.onnx", offset="many", length="inf")
    for places in ((0, 3), (-1, 3), (2**40, 3), (3, 3)):
        for dims in ((4, 5), (2**20, 2**20), (2**62, 4), (-4, 5)):
            made[f"sparse {places} of {dims}"] = lambda p=places, d=dims: _sparse(p, d)
    return made


def _external(location: str, **entries: object) -> onnx.ModelProto:
    made = TensorProto(name="w", data_type=FLOAT, dims=(4, 5), data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        made.external_data.add(key=key, value=str(value))
    return model([helper.make_node("MatMul", ["x", "w"], ["y"])], [made], shape=(2, 4))


def _sparse(places: tuple[int, int], dims: tuple[int, int]) -> onnx.ModelProto:
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], shape=(2, 4))
    one = made.graph.sparse_initializer.add(dims=dims)
    one.values.CopyFrom(floats("w", 2))
    one.indices.CopyFrom(integers("w_at", *places))
    return made


def structures() -> dict[str, Callable[[], onnx.ModelProto]]:
    """Graphs of odd structure: cycles, names twice or empty, nodes without what they need."""
    relu = helper.make_node
    made: dict[str, Callable[[], onnx.ModelProto]] = {
        "no nodes": lambda: model([], output="x"),
        "no graph": lambda: onnx.ModelProto(ir_version=8),
        "no inputs": lambda: model([relu("Relu", [], ["y"])]),
        "no outputs": lambda: model([relu("Relu", ["x"], [])]),
        "output without a name": lambda: model([relu("Relu", ["x"], [""])]),
        "unknown input": lambda: model([relu("Relu", ["nowhere"], ["y"])]),
        "cycle of one": lambda: model([relu("Identity", ["y"], ["y"])]),
        "cycle": lambda: model([relu("Identity", ["b"], ["a"]), relu("Identity", ["a"], ["b"])]),
        "cycle before weights": lambda: model(
            [relu("Identity", ["b"], ["a"]), relu("Identity", ["a"], ["b"]),
             relu("Conv", ["x", "b"], ["y"])]
        ),
        "backwards": lambda: model([relu("Relu", ["a"], ["y"]), relu("Relu", ["x"], ["a"])]),
        "output twice": lambda: model([relu("Relu", ["x"], ["y"]), relu("Relu", ["x"], ["y"])]),
        "input as output": lambda: model([relu("Relu", ["x"], ["x"])]),
        "constant twice": lambda: model(
            [relu("Add", ["x", "w"], ["y"])], [floats("w", 1), floats("w", 8)]
        ),
        "same node names": lambda: model(
            [relu("Relu", [f"t{n}" if n else "x"], [f"t{n + 1}"], name="a") for n in range(2000)]
        ),
        "no opset": lambda: model([relu("Relu", ["x"], ["y"])], opset_imports=[]),
        "two opsets": lambda: model(
            [relu("Relu", ["x"], ["y"])],
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("", 9)],
        ),
        "unknown domain": lambda: model([relu("Relu", ["x"], ["y"], domain="nobody.\x1b[31m")]),
        "unknown operator": lambda: model([relu("\x1b[31mRelu\n", ["x"], ["y"])]),
        "other's operator": lambda: model([relu("QGemm", ["x"], ["y"], domain="com.microsoft")]),
        "other's axis": lambda: model(
            [relu("QuantizeLinear", ["x", "s", "z"], ["y"], domain="com.microsoft", axis="a")],
            [floats("s"), tensor((), b"\0", TensorProto.UINT8, "z")],
        ),
        "subgraph of itself": lambda: calls(1, 1, endless=True),
        "ring of functions": lambda: calls(3, 2, endless=True),
        "chain of functions": lambda: calls(3000, 1),
        "long function": lambda: calls(2, 600),
        "ir 0": lambda: _with(conv(), ir_version=0),
        "ir huge": lambda: _with(conv(), ir_version=2**62),
        "no output": lambda: _without_outputs(),
        "loop without end": lambda: loop(None, constant=False),
        "constant loop without end": lambda: loop(None, constant=True),
        "loop of 100000": lambda: loop(100_000, constant=False),
        "constant loop of 100000": lambda: loop(100_000, constant=True),
        "constant loop of 2^62": lambda: loop(2**62, constant=True),
        "scan of 100000": lambda: scan(100_000),
        "scan of 2^40": lambda: scan(2**40),
        "sequence": lambda: model(
            [relu("SequenceConstruct", ["x", "x"], ["s"]),
             relu("ConcatFromSequence", ["s"], ["y"], axis=0)]
        ),
        "names": lambda: _named("\x1b[31m<script>\ud7ff" + "n" * 70_000),
    }  # fmt: skip
    for opset in (0, -1, 1, 6, 10**9, 2**62):
        made[f"opset {opset}"] = lambda o=opset: _with_opset(conv(), o)
    for levels in (20, 60, 400):
        made[f"functions that double {levels} times"] = lambda n=levels: calls(n, 2)
    for kind in ("group", "pads", "kernel_shape", "auto_pad"):
        for value in (1.5, "x", b"\xff\xfe", [1.5], ["a"], 7, floats("t", 2), [2**62]):
            made[f"{kind} is {value!s:.20}"] = lambda k=kind, v=value: conv(**{k: v})
    return made


def _with(made: onnx.ModelProto, **fields: Any) -> onnx.ModelProto:
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def _with_opset(made: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    made.opset_import[0].version = opset
    return made


def _without_outputs() -> onnx.ModelProto:
    made = conv()
    del made.graph.output[:]
    return made


def _named(name: str) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", name], [f"a{name}"], name=name),
        helper.make_node("Relu", [f"a{name}"], [f"b{name}"], name=name),
    ]
    made = model(nodes, [floats(name, 6, 4, 3, 3)])
    made.graph.name, made.producer_name = name, name
    return made


def models() -> dict[str, Callable[[], onnx.ModelProto]]:
    """All of them by name, made when they are asked for."""
    return {
        **structures(),
        **attributes_of_every_size(),
        **sizes_made_of_constants(),
        **lying_tensors(),
    }
