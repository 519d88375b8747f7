"""The command line.  Verbs are found through the entry-point group `archsim.commands`."""
