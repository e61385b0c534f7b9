"""Logs: the port of the append-only store of event rows, and its adapters."""
