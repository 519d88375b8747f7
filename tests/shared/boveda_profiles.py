"""Fraction bits that `archsim paper boveda` finds by searching, for tests that need not search."""

PROFILED = {
    ("photographs", "right"): (6, -4),
    ("photographs", "kept"): (13, 1),
    ("words", "right"): (7, 5),
    ("words", "kept"): (13, 8),
}
"""What `profile` answers: a slow test checks it by searching."""
