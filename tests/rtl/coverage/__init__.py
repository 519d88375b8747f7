"""Tests of rtl/coverage."""
