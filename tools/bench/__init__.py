"""Measures what the project promises of its speed: each figure beside its baseline, from the same run, alternating."""
