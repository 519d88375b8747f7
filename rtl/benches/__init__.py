"""Simulation benches: one description of a run, three simulators that answer it alike.

| file | holds |
|---|---|
| `bench` | what is driven (`Bench`) and what is answered (`Outcome`), with the exact semantics |
| `words` | payloads as packed bytes, from integers and from lanes |
| `boundary` | a component's streams and probes |
| `drivers` | drivers and monitors in Python |
| `amaranth_bench` | `run_amaranth`: Amaranth's simulator, for small designs |
| `verilated` | `Verilated`: Verilator with the bench in C++, for millions of transfers |
| `cocotb_bench` | `run_cocotb`: cocotb on Verilator, for the emitted file |
| `poke` | `open_with_pyverilator`: one wire at a time, in a notebook |
| `build_cache` | compiled simulators, kept |
| `common_code` | headers and a library that all of them have, compiled once |

`wrapper`, `verilated_build`, `cocotb_build`, `cocotb_files` and `cocotb_entry` are parts of these.
"""
