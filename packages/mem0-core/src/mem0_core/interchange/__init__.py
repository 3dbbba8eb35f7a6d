"""Import and export: chats, installations of mem0 1.x, files of this package's own export, and PAM and MIF.

Importers read and check a file as a whole, then write through the methods of a memory, which callers pass in
(`ImportTarget`). Exporters read a store's maintenance interface. Used by `api` and `cli`; may import everything below
`api`, but neither `api` nor `memory`.
"""

from mem0_core.interchange._chats import ImportedMessage, read_locomo
from mem0_core.interchange._exporters import (
    EXPORT_FORMAT,
    export_csv,
    export_jsonl,
    export_portable,
    is_export_file,
    read_csv,
)
from mem0_core.interchange._files import CHAT_FORMATS, find_portable_format, read_chats
from mem0_core.interchange._importers import ImportTarget, import_chats, import_export, import_mem0_v1, import_portable
from mem0_core.interchange._mem0_v1 import MEM0_V1_FORMAT, find_mem0_folders, is_mem0_v1_folder
from mem0_core.interchange._portable import PORTABLE_FORMATS

__all__ = [
    "CHAT_FORMATS",
    "EXPORT_FORMAT",
    "MEM0_V1_FORMAT",
    "PORTABLE_FORMATS",
    "ImportTarget",
    "ImportedMessage",
    "export_csv",
    "export_jsonl",
    "export_portable",
    "find_mem0_folders",
    "find_portable_format",
    "import_chats",
    "import_export",
    "import_mem0_v1",
    "import_portable",
    "is_export_file",
    "is_mem0_v1_folder",
    "read_chats",
    "read_csv",
    "read_locomo",
]
