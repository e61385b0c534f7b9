"""A stranger's program that imports the installed wheel: mypy must see its types without our settings."""

from affidavit.crypto import VerificationError, verify_record

__all__ = ["VerificationError", "verify_record"]
