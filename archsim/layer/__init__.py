"""A layer as every machine sees it: its problem, and what it computes, without any machine."""
