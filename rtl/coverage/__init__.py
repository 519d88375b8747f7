"""What the cases of a run reach: bins as data, cases drawn for them, failing ones made small."""
