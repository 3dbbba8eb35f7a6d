"""Import and export: chats of other programs, installations of mem0 1.x, and files of this package's own export.

Importers read and check a file as a whole, then write through the methods of a memory, which callers pass in
(`ImportTarget`). Exporters read a store's maintenance interface. Used by `api` and `cli`; may import everything below
`api`, but neither `api` nor `memory`.
"""

from mem0_core.interchange._chats import ImportedMessage, read_locomo
from mem0_core.interchange._exporters import EXPORT_FORMAT, export_csv, export_jsonl, is_export_file, read_csv
from mem0_core.interchange._files import CHAT_FORMATS, read_chats
from mem0_core.interchange._importers import ImportTarget, import_chats, import_export, import_mem0_v1
from mem0_core.interchange._mem0_v1 import MEM0_V1_FORMAT, find_mem0_folders, is_mem0_v1_folder

__all__ = [
    "CHAT_FORMATS",
    "EXPORT_FORMAT",
    "MEM0_V1_FORMAT",
    "ImportTarget",
    "ImportedMessage",
    "export_csv",
    "export_jsonl",
    "find_mem0_folders",
    "import_chats",
    "import_export",
    "import_mem0_v1",
    "is_export_file",
    "is_mem0_v1_folder",
    "read_chats",
    "read_csv",
    "read_locomo",
]
