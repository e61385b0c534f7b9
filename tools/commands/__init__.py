"""One module for each command of `affidavit`. Each parses its options, calls the runtime, prints, and returns an exit code."""
