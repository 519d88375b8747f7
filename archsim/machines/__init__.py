"""The machines that are built in, each in a room of its own; no room knows another."""
