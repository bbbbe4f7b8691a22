"""The repository's root on the path, so that tests find each other's worlds."""

from __future__ import annotations

import sys
from pathlib import Path

if (root := str(Path(__file__).parents[3])) not in sys.path:
    sys.path.insert(0, root)
