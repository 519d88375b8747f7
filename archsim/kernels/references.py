"""Counts of references that compiled parts need not keep: of arrays that their callers hold.

numba counts a reference wherever an array is given another name, atomically; in a scan that is most
of the time.  A part that makes no array, and answers with none, sees arrays only that live longer
than its call, so what it counts up it counts down again, and neither is needed.

What is counted still, is counted by one thread: arrays that a kernel makes are its own until it is
over, and those that it is given have no counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_FUNCTION = re.compile(r"^define [^\n]*?@(\"[^\"\n]+\"|[-\w$.]+)\(.*?^}\n", re.M | re.S)
_CALL = re.compile(r"\b(?:call|invoke) [^\n]*?@(\"[^\"\n]+\"|[-\w$.]+)\(")
_COUNT = re.compile(r"^\s*(?:tail )?call void @NRT_(?:incref|decref)\([^\n]*\)[^\n]*\n", re.M)
_COUNTS = frozenset({"NRT_incref", "NRT_decref"})

_PLAIN_COUNT = """define void @NRT_{name}(ptr %owner) noinline {{
  %none = icmp eq ptr %owner, null
  br i1 %none, label %over, label %some
some:
  %before = load i64, ptr %owner
  %now = {change} i64 %before, 1
  store i64 %now, ptr %owner
{then}
over:
  ret void
}}
"""
_LAST = """  %last = icmp eq i64 %now, 0
  br i1 %last, label %done, label %over
done:
  call void @NRT_MemInfo_call_dtor(ptr %owner)
  br label %over"""
_PLAIN = {
    "NRT_incref": _PLAIN_COUNT.format(name="incref", change="add", then="  br label %over"),
    "NRT_decref": _PLAIN_COUNT.format(name="decref", change="sub", then=_LAST),
}
"""Counts that are not atomic: a tenth of the time of those that are."""


def without_counts(text: str, borrowing: Iterable[str]) -> str:
    """LLVM's text of a module, its parts without counts where they are not needed.

    borrowing: names of the functions that answer with no array.
    """
    bodies = {found[1]: found[0] for found in _FUNCTION.finditer(text)}
    calls = {name: set(_CALL.findall(body)) - {name} for name, body in bodies.items()}
    free = _free(bodies, calls, set(borrowing))

    def without(found: re.Match[str]) -> str:
        if found[1] in _PLAIN:
            return _PLAIN[found[1]]
        return _COUNT.sub("", found[0]) if found[1] in free else found[0]

    return _FUNCTION.sub(without, text)


def _free(bodies: dict[str, str], calls: dict[str, set[str]], borrowing: set[str]) -> set[str]:
    """The functions that make no array, nor call one that does or that may answer with one."""
    plain = {name for name in bodies if not any(one.startswith("NRT_") for one in calls[name])}
    free = {name for name in bodies if name in plain or name in borrowing} - _COUNTS
    while True:
        kept = {
            name
            for name in free
            if all(one in free or _harmless(one, bodies) for one in calls[name])
        }
        if kept == free:
            return free & borrowing
        free = kept


def _harmless(name: str, bodies: dict[str, str]) -> bool:
    """A count itself, or a function of LLVM or of the C library."""
    return name in _COUNTS or (name not in bodies and not name.startswith(("NRT_", "numba")))
