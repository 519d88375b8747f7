"""What the cases of a run have reached: bins as data, cases steered to them, failing ones shrunk."""
