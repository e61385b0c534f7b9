"""Pure and synchronous: canonical bytes in, verified values or a coded error out."""
