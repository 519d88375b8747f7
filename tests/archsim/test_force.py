"""`--force`: outputs that exist are refused without it, and replaced by whole ones with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Call

from archsim.errors import InputError
from archsim.files import new_file, new_folder, overwriting, require_new, write_new

RUN = ("run", "edge-16", "alexnet", "--timing-only")


@pytest.mark.parametrize(
    ("words", "outputs"),
    [
        ((*RUN, "-o", "out"), ["out"]),
        ((*RUN, "--report", "page.html"), ["page.html"]),
        (("emit", "edge-16", "--set", "rows=2", "-o", "c.v"), ["c.v", "c.json"]),
        (("trace", "edge-16", "alexnet", "--layer", "conv5", "--perfetto", "t.json"), ["t.json"]),
        (("compare", "a.json", "a.json", "--csv", "t.csv"), ["t.csv"]),
    ],
)  # fmt: skip
def test_every_command_refuses_and_replaces(
    archsim: Call, tmp_path: Path, words: tuple[str, ...], outputs: list[str]
) -> None:
    (tmp_path / "a.json").write_text(archsim(*RUN, "--json").out)

    def content() -> dict[str, bytes]:
        files = [one for name in outputs for one in sorted((tmp_path / name).glob("**/*"))]
        files += [tmp_path / name for name in outputs if (tmp_path / name).is_file()]
        return {str(one): one.read_bytes() for one in files if one.is_file()}

    assert archsim(*words).code == 0
    first = content()
    assert first
    again = archsim(*words)
    assert (again.code, again.err) == (
        2, f"archsim: {outputs[0]} exists; give a name that does not, or say --force\n",
    )  # fmt: skip
    for name in first:
        if not name.endswith(".parquet"):
            Path(name).write_text("of old")
    assert archsim(*words, "--force").code == 0
    assert set(content()) == set(first)
    assert b"of old" not in content().values()
    assert sorted(one.name for one in tmp_path.iterdir()) == sorted({"a.json", *outputs})
    assert archsim(*words).code == 2  # it is of one command, not of all that follow


def test_a_folder_with_other_things_in_it_is_kept(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    said = archsim(*RUN, "-o", "mine", "--force")
    assert said.code == 2
    assert said.err.splitlines()[-1] == (
        "archsim: mine holds thesis.tex, which is not from this command; give another name"
    )
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"
    assert [one.name for one in tmp_path.iterdir()] == ["mine"]


def test_that_is_said_before_the_work_where_the_files_are_known(
    archsim: Call, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    said = archsim("synth", "edge-16", "-o", "mine", "--liberty", "absent.lib", "--force")
    assert said.err.startswith("archsim: mine holds thesis.tex")


def test_a_file_is_no_folder(archsim: Call, tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    (tmp_path / "two.html").mkdir()
    said = archsim(*RUN, "-o", "one", "--force")
    assert said.err == "archsim: one is a file, not a folder; give another name\n"
    said = archsim(*RUN, "--report", "two.html", "--force")
    assert said.err == "archsim: two.html is a folder, not a file; give another name\n"


def test_a_failed_write_leaves_the_old_one(tmp_path: Path) -> None:
    file, folder = tmp_path / "f", tmp_path / "d"
    write_new({file: "old"})
    with new_folder(folder) as work:
        (work / "a").write_text("old")
    with overwriting():
        with pytest.raises(ZeroDivisionError), new_file(file) as writing:
            writing.write("new")
            raise ZeroDivisionError
        with pytest.raises(ZeroDivisionError), new_folder(folder) as work:
            (work / "a").write_text("new")
            raise ZeroDivisionError
        require_new(file)
    assert (file.read_text(), (folder / "a").read_text()) == ("old", "old")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["d", "f"]
    with pytest.raises(InputError, match="exists"):
        require_new(file)


@pytest.mark.parametrize("failing", range(1, 5))
def test_a_rename_that_fails_leaves_both_old_files(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files take four renames, aside and in place: each of them fails in turn."""
    files = {tmp_path / "a": "new a", tmp_path / "b": "new b"}
    write_new({path: f"old {path.name}" for path in files})
    count = 0
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == failing:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with overwriting(), pytest.raises(InputError, match="No space left"):
        write_new(files)
    assert {path.read_text() for path in files} == {"old a", "old b"}
    assert {one.name for one in tmp_path.iterdir()} == {"a", "b"}


def test_folders_made_for_a_file_that_fails_go_again(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), new_file(tmp_path / "x" / "y" / "z") as file:
        file.write("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
