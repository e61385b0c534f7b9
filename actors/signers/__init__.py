"""Ways to sign a checkpoint: the port, an encrypted key file, and a throw-away key in memory."""
