"""What is asked of every machine: its design, its model, what a model answers with, its name."""
