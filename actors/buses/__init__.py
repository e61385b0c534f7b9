"""The bus port and its adapters: wakes by subject, never content."""
