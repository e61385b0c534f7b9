"""Whether a failed write failed for want of room.

SQLite reports a full disk as such, but an exceeded quota or file size limit as a plain I/O error. This tells
them apart by asking the system again, after the failure. It never touches the store's own files.
"""

from __future__ import annotations

import errno
import os
import resource
import tempfile
from pathlib import Path
from typing import Final

_PROBE: Final = 256 * 1024
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def has_room(store: Path) -> bool:
    """Tell whether a store's files could grow by some pages just now. Blocks.

    An answer of False is certain; True only means that no limit was found.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and _largest(store) + _PROBE > limit:
        return False
    try:
        with tempfile.TemporaryFile(dir=store.parent) as probe:
            os.posix_fallocate(probe.fileno(), 0, _PROBE)
    except OSError as error:
        return error.errno not in _NO_ROOM
    return True


def _largest(store: Path) -> int:
    sizes = [0]
    for path in (store, store.with_name(store.name + "-wal")):
        try:
            sizes.append(path.stat().st_size)
        except OSError:
            continue
    return max(sizes)
