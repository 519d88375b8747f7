"""The version of the package, kept once."""

VERSION = "0.1.0"
