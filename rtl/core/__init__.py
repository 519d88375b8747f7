"""What stands around an array: loaders, scratchpads, sequencers, accumulators, output stage."""
