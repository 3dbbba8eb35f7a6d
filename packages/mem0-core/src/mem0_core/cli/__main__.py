"""``python -m mem0_core.cli``: equals ``mem0-core``."""

import sys

from mem0_core.cli import main

sys.exit(main())
