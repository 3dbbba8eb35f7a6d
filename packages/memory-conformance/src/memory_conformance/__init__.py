"""A black-box conformance kit for the memory stores of agents.

Write a `System` for your store, and run ``python -m memory_conformance run yourmodule:YourSystem``.
"""

from memory_conformance.api import CAPABILITIES, VERBS, Record, Records, Said, System, Texts
from memory_conformance.registry import Check, CheckError, Kit, load_checks
from memory_conformance.runner import Result, run_in_process, run_system

__all__ = [
    "CAPABILITIES",
    "VERBS",
    "Check",
    "CheckError",
    "Kit",
    "Record",
    "Records",
    "Result",
    "Said",
    "System",
    "Texts",
    "load_checks",
    "run_in_process",
    "run_system",
]
__version__ = "0.1.0"
