"""The policy of a run: what the operator allows, as a file that can be checked, explained and named by its digest."""
