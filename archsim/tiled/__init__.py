"""What all machines share that are walked by tiles: how layers are cut, timed and told of."""
