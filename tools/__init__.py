"""The command line and what else people touch. Thin: parse, call, print, exit code."""
