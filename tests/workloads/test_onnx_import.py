"""ONNX models as networks."""

from typing import TypeVar

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from workloads.errors import WorkloadError
from workloads.layers import Conv2d, MatMul, VectorWork
from workloads.onnx_import import import_onnx, supported_operators
from workloads.operands import from_onnx
from workloads.reference import accumulate

Kind = TypeVar("Kind", Conv2d, MatMul, VectorWork)


def only(kind: type[Kind], model: onnx.ModelProto) -> Kind:
    """The single layer of a network, which is of the given kind."""
    (layer,) = import_onnx(model).layers
    assert isinstance(layer, kind)
    return layer


def vector_work(network):
    return [layer for layer in network.layers if isinstance(layer, VectorWork)]


LIGHT = [
    ("light_bvlc_alexnet", 5, 3, 3, 0.655, 60.95),
    ("light_zfnet512", 5, 0, 3, 1.482, 87.24),
    ("light_vgg19", 16, 0, 3, 19.632, 143.65),
    ("light_inception_v1", 57, 0, 1, 1.432, 6.99),
    ("light_inception_v2", 69, 0, 1, 2.019, 11.17),
    ("light_resnet50", 53, 0, 1, 4.089, 25.50),
    ("light_densenet121", 121, 0, 0, 2.834, 7.89),
    ("light_squeezenet", 26, 0, 0, 0.349, 1.23),
    ("light_shufflenet", 49, 48, 1, 0.125, 1.37),
]


@pytest.mark.parametrize(("file", "counts"), [(row[0], row[1:]) for row in LIGHT])
def test_models_shipped_with_onnx(light, file, counts):
    convs, grouped, products, gmacs, mweights = counts
    network = import_onnx(light / f"{file}.onnx")
    layers = network.matrix_layers
    found = [layer for layer in layers if isinstance(layer, Conv2d)]
    assert len(found) == convs
    assert sum(layer.groups > 1 for layer in found) == grouped
    assert len(layers) - len(found) == products
    assert round(network.macs / 1e9, 3) == gmacs
    assert abs(network.weight_elements / 1e6 - mweights) <= 0.006
    assert network.skipped == ()
    assert network.name == file


def test_shufflenet_keeps_its_shuffles_and_sums_as_vector_work(model, light):
    work = vector_work(import_onnx(light / "light_shufflenet.onnx"))
    count = {
        operator: sum(x.operator == operator for x in work) for operator in ("Transpose", "Sum")
    }
    assert count == {"Transpose": 16, "Sum": 13}
    assert all(x.operations == 0 for x in work if x.operator == "Transpose")


def conv_model(model, **attributes):
    weight = np.ones((4, 3, 3, 3), np.float32)
    return model(
        [("Conv", ["x", "w"], ["y"], attributes)], {"x": [1, 3, 9, 8]}, ["y"], {"w": weight}
    )


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 3], "pads": [1, 0, 2, 1], "dilations": [2, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "SAME_UPPER", "dilations": [2, 2]},
        {"auto_pad": "VALID"},
    ],
)
def test_convolution_attributes_give_the_shape_which_onnx_infers(model, attributes):
    made = conv_model(model, **attributes)
    layer = only(Conv2d, made)
    inferred = onnx.shape_inference.infer_shapes(made).graph.output[0]
    shape = [dim.dim_value for dim in inferred.type.tensor_type.shape.dim]
    assert [1, 4, layer.ofmap_height, layer.ofmap_width] == shape


def test_same_lower_pads_more_before(model):
    upper = only(Conv2d, conv_model(model, auto_pad="SAME_UPPER", strides=[1, 2]))
    lower = only(Conv2d, conv_model(model, auto_pad="SAME_LOWER", strides=[1, 2]))
    assert (upper.pad_left, upper.pad_right) == (0, 1)
    assert (lower.pad_left, lower.pad_right) == (1, 0)


def test_one_dimensional_convolution_has_height_one(model):
    weight = np.ones((4, 2, 5), np.float32)
    made = model(
        [("Conv", ["x", "w"], ["y"], {"pads": [2, 1], "group": 2})],
        {"x": [1, 4, 20]},
        ["y"],
        {"w": weight},
    )
    layer = only(Conv2d, made)
    assert (layer.ifmap_height, layer.kernel_height, layer.pad_top) == (1, 1, 0)
    assert (layer.pad_left, layer.pad_right, layer.ofmap_width, layer.groups) == (2, 1, 19, 2)


def relu_model(model, extra=(), outputs=("z",)):
    nodes = [("Conv", ["x", "w"], ["y"], {}), ("Relu", ["y"], ["z"], {}), *extra]
    weight = np.ones((4, 3, 3, 3), np.float32)
    return model(nodes, {"x": [1, 3, 8, 8]}, list(outputs), {"w": weight})


def test_relu_is_fused_only_where_it_alone_reads_the_result(model):
    assert only(Conv2d, relu_model(model)).relu
    second_reader = relu_model(model, [("Sigmoid", ["y"], ["s"], {})], ("z", "s"))
    assert [x.relu for x in import_onnx(second_reader).matrix_layers] == [False]
    assert [x.operator for x in vector_work(import_onnx(second_reader))] == ["Relu", "Sigmoid"]
    also_output = relu_model(model, (), ("z", "y"))
    assert [x.relu for x in import_onnx(also_output).matrix_layers] == [False]
    assert len(import_onnx(also_output).layers) == 2


side = st.integers(1, 3)


@given(
    a=st.lists(side, max_size=2),
    b=st.lists(side, max_size=2),
    sizes=st.tuples(side, side, side),
    constant=st.booleans(),
)
def test_matmul_does_the_macs_of_numpys_broadcast_product(model, a, b, sizes, constant):
    m, k, n = sizes
    left, right = np.ones((*a, m, k), np.float32), np.ones((*b, k, n), np.float32)
    try:
        shape = (left @ right).shape
    except ValueError:
        return
    inputs = {"x": left.shape} if constant else {"x": left.shape, "y": right.shape}
    constants = {"y": right} if constant else {}
    made = model([("MatMul", ["x", "y"], ["z"], {})], inputs, ["z"], constants)
    layer = only(MatMul, made)
    assert layer.ofmap_elements == np.prod(shape)
    assert layer.macs == np.prod(shape) * k
    assert layer.shared_weight == (constant and right.size == k * n)
    random = np.random.default_rng(0)
    if not constant:
        left, right = random.standard_normal(left.shape), random.standard_normal(right.shape)
        feeds = {"x": left.astype(np.float32), "y": right.astype(np.float32)}
        (got,) = from_onnx(made, feeds, bits=16).values()
        product = accumulate(layer, got.ifmap, got.weight) * (got.ifmap_scale * got.weight_scale)
        assert np.allclose(product.reshape(shape), left @ right, atol=0.01)


@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gemm_transposes(model, transposed):
    a, b = (5, 3)[:: 1 - 2 * transposed[0]], (3, 7)[:: 1 - 2 * transposed[1]]
    made = model(
        [("Gemm", ["x", "w", "c"], ["y"], {"transA": transposed[0], "transB": transposed[1]})],
        {"x": a},
        ["y"],
        {"w": np.ones(b, np.float32), "c": np.ones(7, np.float32)},
    )
    assert import_onnx(made).layers == (MatMul(name="y_node", m=5, n=7, k=3, bias=True),)


def flatten_by_shape(model, batch):
    """x reshaped to [shape(x)[0], -1] as exporters write it, then a product."""
    return model(
        [
            ("Shape", ["x"], ["shape"], {}),
            ("Gather", ["shape", "zero"], ["batch"], {"axis": 0}),
            ("Unsqueeze", ["batch", "axes"], ["batch1"], {}),
            ("Concat", ["batch1", "rest"], ["target"], {"axis": 0}),
            ("Mul", ["target", "ones"], ["target2"], {}),
            ("Reshape", ["x", "target2"], ["flat"], {}),
            ("MatMul", ["flat", "w"], ["y"], {}),
        ],
        {"x": [batch, 4, 2, 2]},
        ["y"],
        {
            "zero": np.array(0, np.int64),
            "axes": np.array([0], np.int64),
            "rest": np.array([-1], np.int64),
            "ones": np.array([1, 1], np.int64),
            "w": np.ones((16, 10), np.float32),
        },
    )


def test_shapes_of_shapes_are_folded_and_are_no_work(model):
    network = import_onnx(flatten_by_shape(model, "batch"), dims={"batch": 3})
    assert network.layers == (MatMul(name="y_node", m=3, n=10, k=16),)


def test_shapes_which_inference_alone_does_not_follow_are_evaluated(model):
    made = model(
        [
            ("Shape", ["x"], ["shape"], {}),
            ("ReduceProd", ["shape"], ["total"], {"keepdims": 1}),
            ("Div", ["total", "six"], ["rows"], {}),
            ("Concat", ["rows", "columns"], ["target"], {"axis": 0}),
            ("Reshape", ["x", "target"], ["matrix"], {}),
            ("MatMul", ["matrix", "w"], ["y"], {}),
        ],
        {"x": ["batch", 3, 4]},
        ["y"],
        {
            "six": np.array([6], np.int64),
            "columns": np.array([-1], np.int64),
            "w": np.ones((6, 5), np.float32),
        },
    )
    assert import_onnx(made, dims={"batch": 2}).layers == (MatMul(name="y_node", m=4, n=5, k=6),)


def test_dynamic_dimensions(model):
    with pytest.raises(WorkloadError) as caught:
        import_onnx(flatten_by_shape(model, "batch"))
    assert str(caught.value) == (
        "tiny: dimension 'batch' of input 'x' is dynamic and not given; "
        "give it with --dim batch=1 (or another size)"
    )
    with pytest.raises(WorkloadError, match=r"'x:0' of input 'x' .* --dim x:0=1 "):
        import_onnx(flatten_by_shape(model, None))
    assert import_onnx(flatten_by_shape(model, None), dims={"x:0": 2}).macs == 2 * 160
    with pytest.raises(WorkloadError, match=r"^tiny: no dynamic dimension is named 'b'; there are"):
        import_onnx(flatten_by_shape(model, "batch"), dims={"batch": 1, "b": 2})
    with pytest.raises(WorkloadError, match=r"^tiny: batch must be positive, not 0$"):
        import_onnx(flatten_by_shape(model, "batch"), dims={"batch": 0})
    with pytest.raises(WorkloadError, match=r"named 'batch'; there are none$"):
        import_onnx(relu_model(model), dims={"batch": 1})


def test_unsupported_operator_is_named_and_can_be_skipped(model):
    made = model([("Relu", ["x"], ["r"], {}), ("Det", ["r"], ["y"], {})], {"x": [2, 3, 3]}, ["y"])
    with pytest.raises(WorkloadError) as caught:
        import_onnx(made)
    text = str(caught.value)
    assert text.startswith("tiny: operator Det of node 'y_node' is not supported; ")
    assert text.endswith(", ".join(supported_operators()))
    network = import_onnx(made, skip_unsupported=True)
    assert network.skipped == ("y_node: Det",)
    assert [x.name for x in network.layers] == ["r_node"]


def test_operator_of_another_domain_is_not_taken_for_onnx_own(model):
    made = model([("Relu", ["x"], ["y"], {})], {"x": [2]}, ["y"])
    made.graph.node[0].domain = "com.example"
    with pytest.raises(WorkloadError, match=r"operator com\.example\.Relu of node 'y_node'"):
        import_onnx(made)


def test_files_which_are_no_models(model, tmp_path):
    missing = tmp_path / "none.onnx"
    with pytest.raises(WorkloadError, match="no such file; an ONNX model"):
        import_onnx(missing)
    with pytest.raises(WorkloadError, match="no such file"):
        import_onnx(tmp_path)
    text = tmp_path / "text.onnx"
    text.write_text("this is not a network\n")
    with pytest.raises(WorkloadError, match="not an ONNX model, or a broken one"):
        import_onnx(text)
    empty = tmp_path / "empty.onnx"
    empty.write_bytes(b"")
    with pytest.raises(WorkloadError, match="not an ONNX model: it holds no graph"):
        import_onnx(str(empty))
    whole = relu_model(model).SerializeToString()
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WorkloadError, match=r"broken\.onnx: not an? (valid )?ONNX model"):
        import_onnx(broken)


def test_invalid_models_are_refused(model):
    loose = relu_model(model)
    loose.graph.node[0].input[0] = "nowhere"
    with pytest.raises(WorkloadError, match=r"reads .nowhere., which nothing before it writes"):
        import_onnx(loose)
    shallow = conv_model(model)
    shallow.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 5
    with pytest.raises(WorkloadError, match=r"5 / 1 input channels, not 3|shape inference fails"):
        import_onnx(shallow)


def test_import_does_not_change_the_model(model):
    made = flatten_by_shape(model, "batch")
    before = made.SerializeToString()
    import_onnx(made, dims={"batch": 3})
    assert made.SerializeToString() == before


def test_names_are_made_unique(model):
    made = model(
        [("Relu", ["x"], ["a"], {}), ("Tanh", ["a"], ["b"], {}), ("Abs", ["b"], ["c"], {})],
        {"x": [2]},
        ["c"],
    )
    for node, name in zip(made.graph.node, ("n", "n", ""), strict=True):
        node.name = name
    assert [x.name for x in import_onnx(made).layers] == ["n", "n_2", "c"]


@pytest.mark.parametrize(("kind", "gates", "directions"), [("LSTM", 4, 1), ("GRU", 3, 2)])
def test_recurrent_layers(model, kind, gates, directions):
    hidden, inputs, steps, batch = 6, 5, 3, 2
    constants = {
        "w": np.ones((directions, gates * hidden, inputs), np.float32),
        "r": np.ones((directions, gates * hidden, hidden), np.float32),
    }
    direction = "bidirectional" if directions == 2 else "forward"
    made = model(
        [(kind, ["x", "w", "r"], ["y"], {"hidden_size": hidden, "direction": direction})],
        {"x": [steps, batch, inputs]},
        ["y"],
        constants,
    )
    network = import_onnx(made)
    assert network.macs == directions * steps * batch * gates * hidden * (inputs + hidden)
    assert network.weight_elements == sum(a.size for a in constants.values())
    assert len(network.layers) == 3 * directions
    cells = {"LSTM": 17, "GRU": 14}[kind] * hidden * steps * batch
    assert [x.operations for x in vector_work(network)] == [cells] * directions


@pytest.mark.parametrize(
    ("node", "operations"),
    [
        (("MaxPool", ["x"], ["y"], {"kernel_shape": [3, 2], "strides": [1, 2]}), 2 * 2 * 2 * 6),
        (("AveragePool", ["x"], ["y"], {"kernel_shape": [2, 2]}), 2 * 3 * 3 * 4),
        (("GlobalAveragePool", ["x"], ["y"], {}), 32),
        (("Softmax", ["x"], ["y"], {}), 5 * 32),
        (("LRN", ["x"], ["y"], {"size": 5}), 9 * 32),
        (("Add", ["x", "x"], ["y"], {}), 32),
        (("Sum", ["x", "x", "x"], ["y"], {}), 64),
        (("HardSwish", ["x"], ["y"], {}), 5 * 32),
        (("Transpose", ["x"], ["y"], {}), 0),
        (("Concat", ["x", "x"], ["y"], {"axis": 1}), 0),
    ],
)
def test_vector_work_is_counted_by_the_stated_rule(model, node, operations):
    work = only(VectorWork, model([node], {"x": [1, 2, 4, 4]}, ["y"]))
    assert work.operator == node[0]
    assert work.operations == operations
    assert work.macs == 0


def test_views_and_constant_arithmetic_are_no_layers(model):
    made = model(
        [
            ("Unsqueeze", ["scale", "axes"], ["scale4"], {}),
            ("Flatten", ["x"], ["flat"], {}),
            ("Identity", ["flat"], ["same"], {}),
            ("Mul", ["same", "scale4"], ["y"], {}),
        ],
        {"x": [1, 2, 4]},
        ["y"],
        {"scale": np.ones(8, np.float32), "axes": np.array([0], np.int64)},
    )
    work = only(VectorWork, made)
    assert (work.operator, work.input_elements, work.output_elements) == ("Mul", 8, 8)


def test_local_functions_are_inlined():
    function = helper.make_function(
        "local",
        "Twice",
        ["a"],
        ["c"],
        [helper.make_node("Tanh", ["a"], ["b"]), helper.make_node("Tanh", ["b"], ["c"])],
        [helper.make_opsetid("", 17)],
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph(
        [helper.make_node("Twice", ["x"], ["y"], domain="local")], "g", [x], [y]
    )
    made = helper.make_model(
        graph,
        functions=[function],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("local", 1)],
        ir_version=8,
    )
    assert [layer.operator for layer in vector_work(import_onnx(made))] == ["Tanh", "Tanh"]
