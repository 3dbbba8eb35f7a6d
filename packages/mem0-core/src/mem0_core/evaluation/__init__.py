"""Evaluation of memory on one's own transcripts: questions, arms, figures and a report.

Each arm is a way to give a model the past: nothing, the whole history, the last messages, or a memory by some recipe
and embedder. The package uses a memory through its public methods, in a store of its own. It may import
`mem0_core.memory` and everything below it; the command imports it on demand.
"""

from mem0_core.evaluation.arms import (
    DEPTH,
    Arm,
    MemoryArm,
    NoMemory,
    Outcome,
    RecentWindow,
    Remembered,
    Settings,
    WholeHistory,
)
from mem0_core.evaluation.cloze import make_questions
from mem0_core.evaluation.compare import compare_arms, describe_ranking, rank_memories
from mem0_core.evaluation.datasets import LOCOMO_CATEGORIES, Suite, parse_beam_day, parse_locomo_evidence, read_suite
from mem0_core.evaluation.figures import FIGURES, Figure, bootstrap_intervals, measure, summarize
from mem0_core.evaluation.judging import ModelJudge, make_questions_with_model
from mem0_core.evaluation.questions import Question, read_questions
from mem0_core.evaluation.report import format_figure, render_report
from mem0_core.evaluation.requirements import Requirement, check_requirements, parse_requirement
from mem0_core.evaluation.runner import Judge, evaluate
from mem0_core.evaluation.transcripts import Line, Transcript, read_transcripts
from mem0_core.evaluation.tuning import TOKENS_PER_ANSWER, suggest_settings
from mem0_core.evaluation.workflow import EvaluationPlan, check_page, run_evaluation, write_report

__all__ = [
    "DEPTH",
    "FIGURES",
    "LOCOMO_CATEGORIES",
    "TOKENS_PER_ANSWER",
    "Arm",
    "EvaluationPlan",
    "Figure",
    "Judge",
    "Line",
    "MemoryArm",
    "ModelJudge",
    "NoMemory",
    "Outcome",
    "Question",
    "RecentWindow",
    "Remembered",
    "Requirement",
    "Settings",
    "Suite",
    "Transcript",
    "WholeHistory",
    "bootstrap_intervals",
    "check_page",
    "check_requirements",
    "compare_arms",
    "describe_ranking",
    "evaluate",
    "format_figure",
    "make_questions",
    "make_questions_with_model",
    "measure",
    "parse_beam_day",
    "parse_locomo_evidence",
    "parse_requirement",
    "rank_memories",
    "read_questions",
    "read_suite",
    "read_transcripts",
    "render_report",
    "run_evaluation",
    "suggest_settings",
    "summarize",
    "write_report",
]
