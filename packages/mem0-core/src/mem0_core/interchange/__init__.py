"""What others keep, read; what we keep, written: chats and memories in files.

`files` opens a file and tells its format, `chats` has a reader for each format of chats, `mem0_v1` reads an
installation of mem0 1.x, `importing` brings both into a memory, `exporting` writes a store out.
"""
