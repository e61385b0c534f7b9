"""The agent's tools behind one port: typed arguments, one run's set of them, reading a workspace."""
