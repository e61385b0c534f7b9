"""Language models behind one port: scripted, at an OpenAI-compatible endpoint, or in this process."""
