"""The cache builds once, keeps nothing of a failure, and bears builders side by side."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from archsim.kernels import kernel_folder
from archsim.robust.measured import cache_file
from rtl.benches.build_cache import build_once, cache_key, simulators
from workloads.cache_folder import CACHE_VARIABLE


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))


def test_an_entry_is_built_once():
    calls = []

    def build(folder):
        calls.append(folder)
        (folder / "x").write_text("built")

    for _ in range(2):
        place = build_once("kind", "key", build)
        assert (place / "x").read_text() == "built"
        assert place == simulators() / "kind" / "key"
    assert len(calls) == 1


def test_nothing_is_built_where_make_does_not_build(monkeypatch, tmp_path):
    """make refuses folders with a space, as a home folder may have."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "a b"))

    def build(folder):
        assert " " not in str(folder)
        (folder / "below").mkdir()
        (folder / "below" / "x").write_text("built")
        (folder / "link").symlink_to("below")

    place = build_once("kind", "key", build)
    assert place == tmp_path / "a b" / "simulators" / "kind" / "key"
    assert (place / "link" / "x").read_text() == "built"
    assert (place / "link").is_symlink()
    assert [path.name for path in place.parent.iterdir()] == ["key"]


def test_a_failure_leaves_nothing(tmp_path):
    def build(folder):
        (folder / "half").write_text("")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        build_once("kind", "key", build)
    assert list((tmp_path / "simulators" / "kind").iterdir()) == []


def test_builders_of_the_same_do_not_meet(tmp_path):
    both = threading.Barrier(2)

    def build(folder):
        both.wait(10)
        (folder / "x").write_text(folder.name)

    with ThreadPoolExecutor(2) as pool:
        places = list(pool.map(lambda _: build_once("kind", "key", build), range(2)))
    assert places[0] == places[1]
    assert [path.name for path in (tmp_path / "simulators" / "kind").iterdir()] == ["key"]
    assert [path.name for path in places[0].iterdir()] == ["x"]


def test_a_key_tells_its_parts_apart():
    assert cache_key("ab", "c") != cache_key("a", "bc")
    assert cache_key("ab", "c") == cache_key("ab", "c")


def test_the_cache_is_the_users_by_default(monkeypatch):
    monkeypatch.delenv(CACHE_VARIABLE)
    assert simulators().parts[-2:] == ("archsim", "simulators")


def test_a_folder_beside_the_user_is_found_from_elsewhere(monkeypatch, tmp_path):
    """make and other processes run in folders of their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CACHE_VARIABLE, "own/cache")
    place = build_once("kind", cache_key("relative"), lambda work: None)
    assert place == tmp_path / "own/cache/simulators/kind" / cache_key("relative")
    assert kernel_folder() == tmp_path / "own/cache/kernels"
    assert cache_file() == tmp_path / "own/cache/robust.jsonl"
