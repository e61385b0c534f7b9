"""The runtime, on trio only: sessions, streams, goals, and the ports they stand on."""
