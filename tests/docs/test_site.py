"""The documentation site builds without a warning, and its pages say what is so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="pip install 'archsim[docs]'")
pytest.importorskip("mkdocstrings", reason="pip install 'archsim[docs]'")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a reader would: every warning is an error."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "JUPYTER_PLATFORM_DIRS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "WARNING" not in done.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    for path in (ROOT / "docs").rglob("*.md"):
        name = "index.html" if path.name == "README.md" else f"{path.stem}.html"
        assert (site / path.parent.relative_to(ROOT / "docs") / name).is_file()
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert (site / "notebooks" / f"{path.stem}.html").is_file()


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    """Pages are read without a network: no scripts, styles or fonts of others."""
    fetched = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"')
    for path in (site / "index.html", site / "gallery.html", site / "api" / "simulate.html"):
        links = fetched.findall(path.read_text(encoding="utf-8"))
        assert not [link for link in links if "canonical" not in link], path


def test_the_gallery_is_drawn(site: Path) -> None:
    named = re.findall(r"\((gallery/\w+\.svg)\)", (ROOT / "docs" / "gallery.md").read_text())
    assert named
    for name in named:
        assert "</svg>" in (site / name).read_text(encoding="utf-8")


def test_docstrings_are_pages(site: Path) -> None:
    text = (site / "api" / "simulate.html").read_text(encoding="utf-8")
    assert "Simulate every layer" in text


def test_a_list_is_shown_as_one(site: Path) -> None:
    """A list right behind a line of text is part of its paragraph to Markdown."""
    for page in site.rglob("*.html"):
        paragraphs = re.findall(r"<p>(.*?)</p>", page.read_text(encoding="utf-8"), re.DOTALL)
        assert not [one for one in paragraphs if re.search(r"^[-*] ", one, re.MULTILINE)], page
