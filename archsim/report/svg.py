"""From matplotlib's SVG to one for the page: its colours, its font, exact figures as tooltips.

Colours become CSS variables (`archsim.report.theme`), text takes the page's font, ids get a prefix
so that none occurs twice in a page, and a mark's note (`archsim.plots.axes.NOTE`) its `<title>`.
Numbers are rounded to a hundredth of a CSS pixel; marks of no extent are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from archsim.plots.axes import NOTE
from archsim.report.theme import variable

Element = ElementTree.Element

_COLOUR = re.compile(r"#[0-9a-fA-F]{6}\b")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_REFERENCE = re.compile(r"#(m[0-9a-f]{6,}|p[0-9a-f]{6,})\b")
_POINT = re.compile(r"(-?[\d.]+) (-?[\d.]+)")
_DROPPED_STYLES = ("font-family", "stroke-linejoin", "stroke-dashoffset", "stroke-miterlimit")
_LINK = "{http://www.w3.org/1999/xlink}href"


def page_svg(drawn: str, prefix: str) -> str:
    """The SVG as it stands in the page; `prefix` is of this drawing alone."""
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    _prune(root)
    for element in root.iter():
        _restyle(element, prefix)
    _annotate(root)
    _unwrap(root)
    width, height = root.attrib["viewBox"].split()[2:]
    root.attrib.clear()
    root.attrib |= {"viewBox": f"0 0 {width} {height}", "fill": "var(--black)"}
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    return ElementTree.tostring(root, encoding="unicode")


def _prune(root: Element) -> None:
    """Without metadata, and without the style sheet, which would hold for the whole page."""
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style"):
                parent.remove(child)
        parent.text = (parent.text or "").strip()
        parent.tail = ""


def _rounded(text: str) -> str:
    return _NUMBER.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), text)


def _restyle(element: Element, prefix: str) -> None:
    """Colours, font, numbers and references of one element."""
    attributes = element.attrib
    link = attributes.pop(_LINK, None)
    if link is not None:
        attributes["href"] = link
    if element.tag == "image":
        attributes.pop("id", None)  # made of what it shows: two may show the same
    for name, value in attributes.items():
        if name == "id":
            if _REFERENCE.fullmatch(f"#{value}"):
                attributes[name] = f"{prefix}-{value}"
            continue
        if name in ("d", "x", "y", "width", "height", "transform"):
            value = re.sub(r"\s*([A-Za-z])\s*", r"\1", _rounded(value)) if name == "d" else value
            attributes[name] = _rounded(value)
        else:
            attributes[name] = _REFERENCE.sub(rf"#{prefix}-\1", value)
    if attributes.get("transform", "").startswith("rotate(-0"):
        del attributes["transform"]
    style = attributes.pop("style", "")
    _set_style(element, style)


def _set_style(element: Element, style: str) -> None:
    """A lone fill is a class of its own; the rest stays a style, in the page's colours."""
    parts = [part.partition(":") for part in style.split(";") if part.strip()]
    kept = {
        name.strip(): _COLOUR.sub(lambda found: variable(found[0]), value.strip())
        for name, _, value in parts
        if name.strip() not in _DROPPED_STYLES
    }
    if element.tag == "path" and list(kept) == ["fill"] and kept["fill"] != "none":
        element.set("class", kept["fill"].removeprefix("var(--").removesuffix(")"))
    elif kept:
        element.set("style", ";".join(f"{name}:{value}" for name, value in kept.items()))


def _annotate(root: Element) -> None:
    """Marks with notes: the exact figure as a title; none for marks of no extent."""
    for parent in list(root.iter()):
        for child in list(parent):
            name = child.get("id", "")
            if not name.startswith(NOTE):
                continue
            outlines = [path for path in child.iter("path") if path.get("d")]
            if outlines and all(_is_flat(path.get("d", "")) for path in outlines):
                parent.remove(child)
                continue
            title = ElementTree.Element("title")
            title.text = name.removeprefix(NOTE)
            for path in outlines:
                path.attrib.pop("clip-path", None)
                if path.get("style") == "fill:none":
                    path.attrib["pointer-events"] = "all"
            target = child[0] if len(child) == 1 else child
            target.insert(0, title)


def _is_flat(outline: str) -> bool:
    """Whether an outline has no width or no height."""
    points = [(float(x), float(y)) for x, y in _POINT.findall(outline)]
    return not points or any(len({point[axis] for point in points}) == 1 for axis in (0, 1))


def _unwrap(parent: Element) -> None:
    """Drop the names of groups that nothing refers to, then the groups that say nothing."""
    for child in parent:
        if child.tag == "g":
            child.attrib.pop("id", None)
        _unwrap(child)
    parent[:] = list(_flattened(parent))


def _flattened(parent: Element) -> Iterator[Element]:
    for child in parent:
        if child.tag != "g" or child.attrib or (len(child) and child[0].tag == "title"):
            yield child
        else:
            yield from child
