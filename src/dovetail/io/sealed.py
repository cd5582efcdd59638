"""Parquet files that say themselves whether they are whole: a hash of all their bytes stands in their metadata.

Without it a changed bit is another number more often than an error, and of what is worse polars panics.
"""

from __future__ import annotations

import re
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dovetail.files import beside

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

_KEY: Final = "dovetail.seal"
_OPEN: Final = f"{_KEY}:{'0' * 64}"
"""What stands for the hash while it is taken."""
_SEAL: Final = re.compile(re.escape(_KEY).encode() + rb":[0-9a-f]{64}")


def write_sealed(frame: pl.DataFrame, path: Path, metadata: Mapping[str, str] | None = None, **options: Any) -> None:
    """Write a frame as Parquet that any program reads, with its seal."""
    made = BytesIO()
    frame.write_parquet(made, metadata={**(metadata or {}), _KEY: _OPEN}, **options)
    before, mark, after = made.getvalue().rpartition(_OPEN.encode())
    digest = sha256(before + mark + after).hexdigest()
    with beside(path) as new, new.open("xb") as file:
        file.writelines((before, f"{_KEY}:{digest}".encode(), after))


def is_whole(data: bytes) -> bool:
    """Whether these are the bytes of a Parquet file as it was written. Of one without a seal, as earlier versions wrote
    them, only the ends are looked at."""
    seals = list(_SEAL.finditer(data))
    if not seals:
        return len(data) > 12 and data[:4] == data[-4:] == b"PAR1" and _KEY.encode() not in data
    at, end = seals[-1].span()
    found = sha256(data[:at] + _OPEN.encode() + data[end:]).hexdigest()
    return data[:end].endswith(found.encode())
