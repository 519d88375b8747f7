"""The small designs of every kind that mutants are tried on: each unit is in one of them."""

from tests.mutation.trial import Subject

SUBJECTS: dict[str, tuple[Subject, ...]] = {
    "systolic": (
        Subject(design="edge-16", settings=("rows=4", "columns=3")),
        Subject(design="edge-16", settings=("rows=3", "columns=4", "dataflow=output_stationary")),
        Subject(design="edge-16", settings=("rows=4", "columns=2", "dataflow=input_stationary")),
    ),
    "tensorcore": (Subject(design="volta", settings=("octets=1",)),),
    "vsq": (Subject(design="vsq-16", settings=("lanes=2", "vector_size=4")),),
    "scnn": (Subject(design="scnn", settings=("grid_rows=2", "grid_columns=2")),),
}
