"""Parts of one's own for archsim, each found by an entry point of this package.

dot_unit        a machine: a dot product of L lanes a cycle
registers       a memory: a scratchpad of flip-flops
bit_planes      a codec: bits of one weight side by side, planes of zeros left out
csv_prices      a source of prices: rows of a CSV file
prices          a technology, mine.toml, that takes some of its prices from there
topology        an importer: layers from a CSV file as SCALE-Sim takes them
"""

from pathlib import Path

MINE = Path(__file__).parent / "prices" / "mine.toml"
"""The technology `mine`."""
