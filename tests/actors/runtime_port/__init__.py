"""The contract of the runtime port, and what a session makes of runtimes that break it."""
