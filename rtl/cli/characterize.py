"""`archsim characterize`: measure a cell library, for prices of logic."""

from pathlib import Path
from typing import Annotated

import typer

from archsim.cli.options import Force
from archsim.cli.output import progress_bar, say
from archsim.errors import require
from archsim.files import require_new, write_new


def characterize_library(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE.toml", help="A new coefficient file.")
    ],
    liberty: Annotated[
        Path | None,
        typer.Option(metavar="FILE.lib", help="Cell library; without it, Debian's osu018."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the coefficients; without it, the file's.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Where the library is from, for those who read the file.")
    ] = None,
    node_nm: Annotated[
        float | None, typer.Option(help="Technology node, for libraries that are not known.")
    ] = None,
    force: Force = False,
) -> None:
    """Measure area, leakage and energy of building blocks with a cell library (some minutes).

    Multipliers, adders, registers and others of many sizes are mapped to the library's cells and
    simulated gate by gate.  The file that is written can be the source of a technology:
    energy = {mac = "synthesis:FILE.toml"}.

    Example:

    \b
      archsim characterize --liberty cells.lib --node-nm 65 -o cells65.toml
    """
    from rtl.synthesis.characterize import characterize
    from rtl.synthesis.liberty import DEFAULT_LIBRARY, read_library

    require(output.suffix == ".toml", f"{output} must end in .toml")
    require(node_nm is None or node_nm > 0, f"--node-nm must be positive, not {node_nm}")
    require_new(output)
    library = read_library(liberty or DEFAULT_LIBRARY)
    with progress_bar("mapping blocks") as bar:
        measured = characterize(
            library,
            name=name or output.stem,
            library_source=source or str(library.path),
            node_nm=node_nm,
            progress=lambda phase, done, total: bar.update(
                bar.task_ids[0], description=phase, completed=done, total=total
            ),
        )
    write_new({output: measured.to_toml()})
    count = sum(len(points) for points in measured.points.values())
    say(f"{output}: {count} blocks measured with {library.name}")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("characterize")(characterize_library)
