"""Sweeps of design spaces: a space of designs, searched, computed by many workers, kept in a study.

| to see | open |
|---|---|
| what a space is | `space.py` (a value), `space_file.py` (TOML), `variants.py` |
| values and constraints of fields | `values.py`, `expressions.py` |
| what a point is | `points.py`: its number, its content's hash, its design; `shared_designs.py` |
| what is asked of it | `objectives.py`, computed by `evaluation.py` |
| which points come next | `search.py` (methods), `samplers/`; learned by `surrogate.py` |
| who computes them | `running.py` (the loop), `workers.py`, `cluster.py` (Dask) |
| what is kept | `study.py` over `store.py` (DuckDB), `rows.py` |
| what is best | `front.py`; so far, `standing.py` |
| what others see of a run | `live.py` |
"""

from archsim.sweeps.front import front_of
from archsim.sweeps.search import Search
from archsim.sweeps.space import MachineSpace, Space
from archsim.sweeps.space_file import load_space, space_toml
from archsim.sweeps.study import Study

__all__ = ["MachineSpace", "Search", "Space", "Study", "front_of", "load_space", "space_toml"]
