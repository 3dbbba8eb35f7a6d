"""Flows: pipelines written once as generators, run by sync or async code."""

from mem0_core.flow.engine import Both, Call, Flow, Step, StepRecord, arun, both, call_all, defer, do, observe, run

__all__ = ["Both", "Call", "Flow", "Step", "StepRecord", "arun", "both", "call_all", "defer", "do", "observe", "run"]
