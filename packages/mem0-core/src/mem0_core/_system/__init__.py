"""The process around a memory: private files, locks, threads of numerical libraries, foreign exceptions.

Every package may import its modules; they import `errors` and the wording of `domain.suggestions` alone.
"""
