"""Whose picture it is: reads author, copyright and licence from a file's metadata, and writes them into variants.

Nothing is copied. `read_rights` takes eight values out of EXIF, IPTC-IIM and XMP (`exif`, `iptc`, `xmp`), found in the
file by `places`; `carriers_of` writes new blocks that have those values and nothing else.
"""

from __future__ import annotations

from darkroom.imaging.rights.read import FoundRights, read_rights
from darkroom.imaging.rights.rights import Rights
from darkroom.imaging.rights.write import Carriers, carriers_of

__all__ = ["Carriers", "FoundRights", "Rights", "carriers_of", "read_rights"]
