"""The verbs that `rtl` adds to the command line."""
