"""Calls of the command line as an attacker makes them: any value, any file, any place.

`attacks()` has them by name.  The words and files are data; what they are given to is read off the
commands, so that an option that is new is attacked too.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from command_line import commands, parameters_of

SEED = 20261125

NINES = "9" * 5000

VALUES = (
    "0", "-1", "1", "1000000", "1000000000000", str(2**31), str(2**63), str(-(2**63)), NINES,
    "-" + NINES, "nan", "inf", "-inf", "1e300", "-1e300", "1e-320", "0.5", "-0.0", "1e400",
    "0x10", "1_000", "\uff11\uff12", "١٢", " 1 ", "1 2", "1,2", "1/0", "true", "null", "None", "",
    " ", "-", "--", "---", "=", "==", "a=", "=1", "a=1", "a=b=c", "rows", "rows=", "rows=1\n",
    "rows=[", "rows={a=1}", "rows=" + "[" * 900, "rows=" + NINES, "rows=nan", "rows=1e400",
    "clock_hz=1e-320", "clock_hz=1e300", "clock_hz=-0.0", "off_chip={}",
    "off_chip.bytes_per_cycle=0", "off_chip.bytes_per_cycle=1e300", "dataflow='\\u001b[31m'",
    "kind=1", "ifmap_memory=1", "ifmap_memory.capacity_bytes=1",
    "ifmap_memory.capacity_bytes=1000000000000000", "operand_bits=0", "operand_bits=1000000",
    "rows=65536", "columns=0b1", "x=0", "x=-1", "x=1000000000000", "batch=" + NINES, "*", "?",
    "%s%n", "{0}", "{rows}", "$(id)", "`id`", "$x$", "[red]x[/red]", "[/]",
    "[link=file:///etc/passwd]x", "<script>alert(1)</script>", "&lt;", "\\", "\\n", "'", '"',
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x08\x08", "\r", "\t", "a\nb", "\x7f", "\x9b31m",
    "\u202egnp", "\u200b", "\ufeff", "\udcff", "\U0001f980", "é", "e\u0301", "A" * 70_000,
    "é" * 300, ".", "..", "../..", "/", "//", "/dev/null", "/dev/zero", "/dev/full",
    "/proc/self/mem", "/proc/self/fd/0", "~", "~root", "con", "nul", "-o", "--help", "--json",
    "@file", "edge-16", "http://localhost/x", "file:///etc/passwd", "a;b", "a|b", "a&b", "conv1",
    "y", "7nm",
)  # fmt: skip

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "run": ("edge-16", "small.onnx"),
    "trace": ("edge-16", "small.onnx"),
    "compress": ("small.onnx",),
    "compare": ("good.json",),
    "show": ("edge-16",),
    "list": ("designs",),
    "paper": ("absent",),
    "emit": ("edge-16",),
    "verify": ("edge-16",),
    "synth": ("edge-16",),
    "power": ("edge-16", "small.onnx"),
    "characterize": (),
    "fpga place": ("cloud-128",),
    "fpga build": ("cloud-128",),
    "fpga fit": ("cloud-128",),
    "fpga run": ("edge-16", "absent"),
    "sweep": ("space.toml",),
    "export": ("good.duckdb", "points.csv"),
    "report": ("good.duckdb",),
    "train": (),
    "capture": ("lenet5",),
    "voltage": ("edge-16",),
}
"""Of each command, what it is given where something else is attacked."""

SMALL = ("--set", "rows=1", "--set", "columns=1")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "emit": SMALL,
    "verify": (*SMALL, "--cases", "1"),
    "synth": (*SMALL, "--liberty", "absent.lib"),
    "power": (*SMALL, "--layer", "y", "--liberty", "absent.lib"),
    "characterize": ("--liberty", "absent.lib", "-o", "c.toml"),
    "sweep": ("-o", "study", "--workers", "1"),
    "fpga build": ("--board", "ulx3s", "-o", "board"),
    "fpga fit": ("--board", "ulx3s", "--no-place"),
    "report": ("-o", "page.html"),
    "voltage": ("--images", "0"),
    "capture": ("-o", "steps", "--epochs", "0", "--pictures", "4", "--batch", "4"),
}
"""Of each command, what it is given beside; where it would work for minutes, a file that is not
there ends it behind all that looks at its options."""

LONG = ("1", "0.5", "1 2", "0", "-0.0", " 1 ", "1_000", "\uff11\uff12", "١٢")
"""Values that may be right, of commands that then work for long."""


@dataclass(frozen=True)
class Attack:
    """words: of the command; environment: beside ours; stdout: where it goes, if to a file."""

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    stdout: str | None = None


def _words(verb: str, *others: str, without: str = "") -> tuple[str, ...]:
    """A call that is right, with other words behind it; without one of its options."""
    options = OPTIONS.get(verb, ())
    pairs = [options[at : at + 2] for at in range(0, len(options), 2)]
    kept = [word for pair in pairs if pair[0] != without for word in pair]
    return (*verb.split(), *ARGUMENTS[verb], *kept, *others)


def of_values(each: int | None = None) -> Iterator[tuple[str, Attack]]:
    """Every option and argument with `each` of the values, or with all of them."""
    draw = random.Random(SEED)
    for verb in commands():
        names = [one for one in parameters_of(verb) if not getattr(one, "is_flag", False)]
        places = iter(range(len(ARGUMENTS[verb])))
        for one in names:
            place = None if one.opts[0].startswith("-") else next(places, None)
            for value in VALUES if each is None else draw.sample(VALUES, each):
                if place is None:
                    words = _words(verb, one.opts[0], value, without=one.opts[0])
                else:
                    words = tuple(value if word == ARGUMENTS[verb][place] else word
                                  for word in _words(verb))  # fmt: skip
                yield f"{verb} {one.opts[0]} {value!r:.30}", Attack(words)
    for option in ("--limit", "--threads"):
        for value in VALUES if each is None else draw.sample(VALUES, each):
            yield f"{option} {value!r:.30}", Attack((option, value, *_words("run")))
    for name in ("tiles", "lanes", "file_mib", "nodes"):
        for value in ("0", "1", NINES, "1e9", str(2**62), "\x1b[31m"):
            words = ("--limit", f"{name}={value}", *_words("run"))
            yield f"--limit {name}={value:.20}", Attack(words)


READ = (
    ("toml", "run", "{}", "small.onnx"),
    ("toml", "run", "edge-16", "small.onnx", "--technology", "{}"),
    ("toml", "run", "edge-16", "small.onnx", "--mapping", "{}"),
    ("toml", "show", "{}"),
    ("toml", "emit", "{}"),
    ("toml", "verify", "{}", "--cases", "1"),
    ("onnx", "run", "edge-16", "{}", "--timing-only"),
    ("onnx", "show", "{}"),
    ("onnx", "trace", "edge-16", "{}"),
    ("onnx", "compress", "{}"),
    ("tflite", "run", "edge-16", "{}", "--timing-only"),
    ("npz", "run", "edge-16", "small.onnx", "--input", "{}"),
    ("npz", "compress", "small.onnx", "--input", "{}"),
    ("npy", "compress", "{}"),
    ("json", "compare", "{}", "good.json"),
    ("json", "compare", "good.json", "{}"),
    ("lib", "synth", "edge-16", *SMALL, "--liberty", "{}"),
    ("lib", "characterize", "-o", "c.toml", "--liberty", "{}"),
    ("toml", "sweep", "{}", "--dry-run"),
    ("duckdb", "export", "{}", "points.csv"),
    ("duckdb", "report", "{}", "-o", "page.html"),
)
"""Suffixes, and calls that read a file of such a name."""

FORMS: Mapping[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "blank": lambda _: b"\n \t\n",
    "nul": lambda _: bytes(4096),
    "bom": lambda good: b"\xef\xbb\xbf" + good,
    "utf16": lambda good: b"\xff\xfe" + good.decode("latin-1").encode("utf-16-le"),
    "crlf": lambda good: good.replace(b"\n", b"\r\n"),
    "latin": lambda good: good + b"\n# \xe9",
    "twice": lambda good: good + good,
    "half": lambda good: good[: len(good) // 2],
    "end": lambda good: good[:-1],
    "zip": lambda _: b"PK\x05\x06" + bytes(18),
    "pickle": lambda _: b"\x80\x04cos\nsystem\n(S'touch pwned'\ntR.",
    "deep": lambda _: b"[" * 100_000,
    "deep json": lambda _: b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep toml": lambda _: b"a = " + b"[" * 10_000 + b"]" * 10_000,
    "keys": lambda _: b"".join(b"k%d = 1\n" % at for at in range(50_000)),
    "key twice": lambda good: good + b"\nrows = 1\nrows = 2\n",
    "digits": lambda _: b'{"cycles": ' + NINES.encode() + b', "layers": 1e999}',
    "xml": lambda _: b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    "gzip": lambda _: b"\x1f\x8b\x08\x00" + bytes(6),
    "line": lambda _: b"x" * 5_000_000,
    "escape": lambda _: b"\x1b[31m = \x1b]0;x\x07",
    "braces": lambda _: b"cell (" * 20_000,
}
"""Bytes made of a good file's."""

PLACES = ("fifo", "loop", "folder", "absent", "zero", "terabyte", "far", "escaped\x1b[31m")
"""Other things that a name may be of."""


def of_files() -> Iterator[tuple[str, Attack]]:
    for suffix, *words in READ:
        for form in (*FORMS, *PLACES):
            name = "d/" * 2000 + "x." if form == "far" else f"../files/{form}."
            yield (
                f"{' '.join(words)} {form}",
                Attack(tuple(word.replace("{}", name + suffix) for word in words)),
            )
    for name in ("/dev/zero", "/dev/stdin", "/proc/self/mem", "/dev/random", "/", "."):
        for _, *words in READ:
            replaced = tuple(word.replace("{}", name) for word in words)
            yield f"{' '.join(words)} {name}", Attack(replaced)


SPACE = """networks = ["small.onnx"]
[[machine]]
design = "edge-16"
[machine.fields]
rows = [1, 2]
"""
"""Of two designs."""


def prepare(folder: Path, good: Mapping[str, bytes]) -> None:
    """Make a folder of all that is read.  good: files by suffix."""
    folder.mkdir()
    for suffix in {suffix for suffix, *_ in READ}:
        for form, make in FORMS.items():
            (folder / f"{form}.{suffix}").write_bytes(make(good[suffix]))
        os.mkfifo(folder / f"fifo.{suffix}")
        (folder / f"loop.{suffix}").symlink_to(f"loop.{suffix}")
        (folder / f"folder.{suffix}").mkdir()
        (folder / f"zero.{suffix}").symlink_to("/dev/zero")
        (folder / f"terabyte.{suffix}").touch()
        os.truncate(folder / f"terabyte.{suffix}", 1 << 40)
        (folder / f"escaped\x1b[31m.{suffix}").write_bytes(good[suffix])


def start(folder: Path, good: Mapping[str, bytes]) -> None:
    """Make the folder, beside that of `prepare`, which a call starts in."""
    folder.mkdir()
    (folder / "good.json").write_bytes(good["json"])
    (folder / "small.onnx").write_bytes(good["onnx"])
    (folder / "good.duckdb").write_bytes(good["duckdb"])
    (folder / "space.toml").write_text(SPACE)
    os.mkfifo(folder / "fifo.toml")
    (folder / "loop.toml").symlink_to("loop.toml")


WRITE = (
    ("", "run", "edge-16", "small.onnx", "-o"),
    (".html", "run", "edge-16", "small.onnx", "--report"),
    (".json", "trace", "edge-16", "small.onnx", "--perfetto"),
    (".vcd", "trace", "edge-16", "small.onnx", "--vcd"),
    (".csv", "compare", "good.json", "good.json", "--csv"),
    (".svg", "compare", "good.json", "good.json", "--plot"),
    (".v", "emit", "edge-16", *SMALL, "-o"),
    (".toml", "characterize", "--liberty", "absent.lib", "-o"),
    ("", "synth", "edge-16", *SMALL, "--liberty", "absent.lib", "-o"),
    ("", "fpga", "place", "cloud-128", "-o"),
    ("", "fpga", "build", "cloud-128", "--board", "ulx3s", "-o"),
    ("", "sweep", "space.toml", "--workers", "1", "-o"),
    (".parquet", "export", "good.duckdb"),
    (".html", "report", "good.duckdb", "-o"),
    (".html", "voltage", "edge-16", "--images", "0", "--report"),
)
NAMES = (
    "/dev/full", "/dev/null", "/dev/stdout", "/proc/x", "/sys/x", "good.json", "small.onnx/x", ".",
    "..", "/", "", "e\x1b[31m", "a\nb", "\udcff", "x" * 250, "x" * 256, "d/" * 3000, "fifo.toml",
    "loop.toml", "loop.toml/x", "[red]", "<b>", "-", "--", " ", "~", "%s", "$x$", "a\\b",
)  # fmt: skip


def of_places() -> Iterator[tuple[str, Attack]]:
    for suffix, *words in WRITE:
        for name in NAMES:
            for ending in {"", suffix}:
                for force in ((), ("--force",)):
                    at = f"{' '.join(words)} {name!r:.30}{ending} {' '.join(force)}"
                    yield at, Attack((*words, f"{name}{ending}", *force))


ENVIRONMENTS: tuple[Mapping[str, str], ...] = (
    {"ARCHSIM_LIMITS": "tiles=" + NINES},
    {"ARCHSIM_LIMITS": "\x1b[31m=1"},
    {"ARCHSIM_LIMITS": "=,=,,"},
    {"ARCHSIM_CACHE_DIR": "/dev/null"},
    {"ARCHSIM_CACHE_DIR": "/proc"},
    {"ARCHSIM_CACHE_DIR": "/dev/full/x"},
    {"ARCHSIM_CACHE_DIR": "x" * 5000},
    {"ARCHSIM_CACHE_DIR": "\x1b[31m\n/\udcff"},
    {"TMPDIR": "/nowhere"},
    {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null"},
    {"HOME": ""},
    {"COLUMNS": "0"},
    {"COLUMNS": "1"},
    {"COLUMNS": "-5"},
    {"COLUMNS": NINES},
    {"COLUMNS": "1000000000000", "LINES": "x"},
    {"TERM": "\x1b[31m"},
    {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    {"OMP_NUM_THREADS": "x", "NUMBA_NUM_THREADS": "-1"},
    {"MPLBACKEND": "nothing"},
    {"MPLCONFIGDIR": "/dev/null"},
)


def of_surroundings() -> Iterator[tuple[str, Attack]]:
    for verb in ("run", "show", "list", "trace", "compare", "compress", "emit", "verify"):
        more = {"compare": ("good.json",)}.get(verb, ())
        for at, environment in enumerate(ENVIRONMENTS):
            words = _words(verb, *more)
            yield f"{verb} in {environment!s:.60} {at}", Attack(words, environment)
        yield f"{verb} to a full disk", Attack(_words(verb, *more), stdout="/dev/full")
        yield f"{verb} --help to a full disk", Attack((verb, "--help"), stdout="/dev/full")
    for words in (("--help",), ("--version",), ("x" * 70_000,), ("\x1b[31m",), ("--\x1b[31m",)):
        yield f"archsim {words!s:.40}", Attack(words)
        yield f"archsim {words!s:.40} to a full disk", Attack(words, stdout="/dev/full")


def attacks(each: int | None = None) -> dict[str, Attack]:
    """All by name; of values, `each` an option."""
    return {
        **dict(of_values(each)),
        **dict(of_files()),
        **dict(of_places()),
        **dict(of_surroundings()),
    }
