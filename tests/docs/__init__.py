"""The documentation is true: examples run, and the README shows what really happens."""
