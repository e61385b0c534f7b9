"""The closed form of an event: its fields, their types and their one order.

Encoding and checking read the same tables, so that they cannot come to disagree.
"""

from itertools import combinations
from typing import Final

from affidavit.crypto.cbor_order import encoded_rank

# Guards memory: a decoded event can take seventy times the space of its bytes.
MAX_EVENT_BYTES: Final = 1 << 20
ACTORS: Final = frozenset({"agent", "human", "system"})

REQUIRED: Final = ("stream", "seq", "time", "type", "actor", "payload", "schema_version")
OPTIONAL: Final = ("causation_id", "origin_instance_id", "principal", "trace_id", "span_id")
ORDER: Final = tuple(sorted(REQUIRED + OPTIONAL, key=encoded_rank))
TYPES: Final[dict[str, type]] = {
    "stream": str,
    "seq": int,
    "time": int,
    "type": str,
    "actor": str,
    "payload": dict,
    "schema_version": int,
    **dict.fromkeys(OPTIONAL, str),
}
# The types of every legal envelope, by its keys in order: one look-up judges keys, order and completeness.
ENVELOPES: Final = {
    keys: tuple(TYPES[key] for key in keys)
    for count in range(len(OPTIONAL) + 1)
    for absent in combinations(OPTIONAL, count)
    for keys in [tuple(key for key in ORDER if key not in absent)]
}
# The shortest event: each required key behind its head of one byte, the map's head, and for each field the shortest value,
# which is one byte but for the actor.
MIN_EVENT_BYTES: Final = sum(1 + len(key) for key in REQUIRED) + len(REQUIRED) + min(map(len, ACTORS)) + 1
