"""What synthesis found about one design, as a value that can be saved, compared and shared."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from archsim.errors import InputError
from rtl.synthesis.area import BUFFERS, Area, Memory, Module
from rtl.synthesis.timing import CriticalPath

__all__ = ["TARGETS", "Branch", "LibraryFacts", "Synthesis", "Target"]

Target = Literal["cells"]
"""What a design can be mapped to: the cells of a Liberty library."""

TARGETS: tuple[Target, ...] = get_args(Target)

FORMAT = 1
"""Of the record; a record of another format is refused."""


@dataclass(frozen=True, kw_only=True)
class LibraryFacts:
    """Which cells were used. gate_area_um2: of the smallest NAND of two inputs."""

    name: str
    file: str
    digest: str
    node_nm: float | None
    voltage_v: float
    gate_area_um2: float


@dataclass(frozen=True, kw_only=True)
class Branch:
    """Instances of one module side by side in one place of the hierarchy.

    instances: their names there. count: how many there are in the whole design. each: the area of
    one with all below it; own: without. memories: macros directly in one of them.
    """

    depth: int
    path: str
    instances: tuple[str, ...]
    module: str
    count: int
    each: Area
    own: Area
    memories: Mapping[str, Memory]

    @property
    def total(self) -> Area:
        """All of them."""
        return self.each.times(self.count)

    @property
    def label(self) -> str:
        """Their names as one: "row_*", or "ifmap_loader, weight_loader"."""
        return label_of(self.instances)


def label_of(names: tuple[str, ...]) -> str:
    """Names that differ in a final number as one, others listed."""
    stems = {re.sub(r"\d+$", "*", name) for name in names}
    return stems.pop() if len(names) > 1 and len(stems) == 1 else ", ".join(names)


@dataclass(frozen=True, kw_only=True)
class Synthesis:
    """A design mapped to standard cells.

    design: its record. modules: by name, from `top` down. critical_path: None where it was not
    measured, for the reason in `timing_note`. tools: versions. options: of the flow.
    Areas are of cells only: no wires, no filling, no memory macros.
    """

    target: Target
    design_name: str
    design: Mapping[str, Any]
    top: str
    modules: Mapping[str, Module]
    library: LibraryFacts
    critical_path: CriticalPath | None
    timing_note: str
    tools: Mapping[str, str]
    options: Mapping[str, Any]

    @cached_property
    def _sums(self) -> dict[str, Area]:
        """One instance of each module with all below it."""
        sums: dict[str, Area] = {}

        def add(name: str) -> Area:
            if name not in sums:
                module = self.modules[name]
                sums[name] = sum((add(one) for one in module.instances.values()), start=module.own)
            return sums[name]

        add(self.top)
        return sums

    def area_of(self, module: str) -> Area:
        """One instance of a module, with all below it."""
        return self._sums[module]

    @property
    def total(self) -> Area:
        """The whole design without its memory macros."""
        return self.area_of(self.top)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """Instances of each module in the whole design."""
        found: dict[str, int] = dict.fromkeys(self.modules, 0)
        for branch in self.branches():
            found[branch.module] += branch.count
        return found

    @cached_property
    def classes(self) -> Mapping[str, Area]:
        """Area by class, each class of each module mapped apart."""
        found: dict[str, Area] = {}
        for name, module in self.modules.items():
            for one, area in module.classes.items():
                found[one] = found.get(one, Area()) + area.times(self.counts[name])
        return dict(sorted(found.items(), key=lambda item: -item[1].area_um2))

    @property
    def splitting_cost(self) -> float:
        """How much larger the classes are together than the whole: 0.05 is 5 %."""
        apart = sum(area.area_um2 for area in self.classes.values())
        return apart / self.total.area_um2 - 1

    @property
    def buffers(self) -> Area:
        """The fan-out buffers in the total."""
        return self.classes.get(BUFFERS, Area())

    def kge(self, area: Area) -> float:
        """An area in thousands of the library's smallest NAND of two inputs."""
        return area.area_um2 / self.library.gate_area_um2 / 1000

    def branches(self) -> Iterator[Branch]:
        """The hierarchy, depth first, at each level the largest first."""
        yield from self._branches(self.top, (self.top,), "", 1, 0)

    def _branches(
        self, module: str, instances: tuple[str, ...], above: str, count: int, depth: int
    ) -> Iterator[Branch]:
        own = self.modules[module]
        path = f"{above}{label_of(instances)}"
        yield Branch(
            depth=depth,
            path=path,
            instances=instances,
            module=module,
            count=count,
            each=self.area_of(module),
            own=own.own,
            memories=own.memories,
        )
        below: dict[str, list[str]] = {}
        for name, kind in own.instances.items():
            below.setdefault(kind, []).append(name)
        prefix = f"{path}/" if depth else ""
        for kind, names in sorted(
            below.items(), key=lambda item: -self.area_of(item[0]).area_um2 * len(item[1])
        ):
            group = tuple(sorted(names))
            yield from self._branches(kind, group, prefix, count * len(group), depth + 1)

    def record(self) -> dict[str, Any]:
        """As plain data; "summary" repeats what follows from the rest, for other programs."""
        path = self.critical_path
        return {
            "format": FORMAT,
            "target": self.target,
            "design_name": self.design_name,
            "design": dict(self.design),
            "top": self.top,
            "library": vars(self.library),
            "tools": dict(self.tools),
            "options": dict(self.options),
            "summary": {
                **vars(self.total),
                "kge": self.kge(self.total),
                "classes_um2": {name: area.area_um2 for name, area in self.classes.items()},
                "splitting_cost": self.splitting_cost,
            },
            "critical_path": None if path is None else path.record(),
            "timing_note": self.timing_note,
            "modules": {name: module.record() for name, module in self.modules.items()},
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Synthesis:
        """The inverse of `record`. Raises `InputError` for a record of another format."""
        given = dict(record)
        found = given.pop("format", None)
        if found != FORMAT:
            raise InputError(f"a synthesis record must have format {FORMAT}, not {found!r}")
        given.pop("summary", None)
        path = given["critical_path"]
        given["critical_path"] = None if path is None else CriticalPath.from_record(path)
        given["library"] = LibraryFacts(**given["library"])
        given["modules"] = {
            name: Module.from_record(name, module) for name, module in given["modules"].items()
        }
        return cls(**given)

    def to_json(self) -> str:
        """The record as JSON."""
        return json.dumps(self.record(), indent=1)

    def to_csv(self) -> str:
        """The hierarchy as a table, one row a `Branch`; areas and leakage of one instance."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        names = ("cells", "flip_flops", "area_um2", "leakage_mw")
        writer.writerow(
            ["path", "module", "count", *names, *(f"own_{name}" for name in names), "total_kge"]
        )
        for branch in self.branches():
            figures = [getattr(area, name) for area in (branch.each, branch.own) for name in names]
            kge = self.kge(branch.total)
            writer.writerow([branch.path, branch.module, branch.count, *figures, kge])
        return text.getvalue()
