"""What the simulator's process is told, and where it answers: it imports no more than it needs."""

__all__ = ["ANSWER_FILE", "BENCH_FILE"]

BENCH_FILE = "ARCHSIM_BENCH_FILE"
"""Environment variable: the pickled bench and its clock, for the simulator's process to read."""

ANSWER_FILE = "ARCHSIM_ANSWER_FILE"
"""Environment variable: where that process pickles its `Outcome` or its exception."""
