"""The capability grant: which tools a goal may use, by name. Handed down, it only narrows."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from affidavit.actors.deciders.port import Action, Denial, Standing
from affidavit.actors.events import FaultClass
from affidavit.crypto import cbor


@dataclass(frozen=True, slots=True)
class CapabilityGrant:
    """What a goal may do. A model call is always granted, since the run exists for it; so is what the host itself declares.

    Attributes:
        tools: The granted tools; None grants every tool that the run was given.
    """

    tools: frozenset[str] | None

    @property
    def digest(self) -> bytes:
        """SHA-256 of the grant's canonical form; stands on each admission made under it."""
        return sha256(cbor.encode(None if self.tools is None else sorted(self.tools))).digest()

    def permits(self, name: str) -> bool:
        """Tell whether a tool of this name is granted."""
        return self.tools is None or name in self.tools

    def narrowed(self, wanted: frozenset[str] | None) -> CapabilityGrant:
        """Return what is left of this grant for somebody who wants these tools; None wants all there is."""
        if wanted is None:
            return self
        return CapabilityGrant(wanted if self.tools is None else self.tools & wanted)

    def decide(self, action: Action, standing: Standing) -> Denial | None:
        """Refuse tools that do not exist and tools that are not granted."""
        if action.is_model_call or action.declared:
            return None
        if not action.known:
            return Denial(FaultClass.FORBIDDEN, "unknown_tool", f"there is no tool named {action.name!r}")
        if not self.permits(action.name):
            who = "goal" if action.goal else "run"
            reason = f"this {who} is not granted the tool {action.name!r}"
            return Denial(FaultClass.FORBIDDEN, "capability_denied", reason)
        return None
