"""The guarded network: every connection made for a run is decided on the address really dialed, and stands on the record."""
