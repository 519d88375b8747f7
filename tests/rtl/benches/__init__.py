"""Tests of `rtl.benches` and `rtl.toolchain`."""
