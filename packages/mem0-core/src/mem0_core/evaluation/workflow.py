"""The `mem0-core eval` command as one function: read, ask, check, and write the report."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mem0_core.api.factory import resolve_component
from mem0_core.config import MemoryConfig, load_config
from mem0_core.errors import ConfigError, InputError
from mem0_core.evaluation.arms import Arm, MemoryArm, NoMemory, RecentWindow, Remembered, Settings, WholeHistory
from mem0_core.evaluation.cloze import make_questions
from mem0_core.evaluation.compare import compare_arms, rank_memories
from mem0_core.evaluation.datasets import Suite, read_suite
from mem0_core.evaluation.judging import ModelJudge, make_questions_with_model
from mem0_core.evaluation.questions import Question, read_questions, sample_questions
from mem0_core.evaluation.receipt import describe_models, make_receipt
from mem0_core.evaluation.report import render_report
from mem0_core.evaluation.requirements import Requirement, check_requirements
from mem0_core.evaluation.runner import RESULT_FORMAT, evaluate
from mem0_core.evaluation.transcripts import Transcript, read_transcripts
from mem0_core.evaluation.tuning import TOKENS_PER_ANSWER, suggest_settings
from mem0_core.interfaces import ChatModel
from mem0_core.interfaces.maintenance import ProgressCallback

BY_RULES, BY_MODEL = "rules", "model"
"""Names of the ways to make questions."""

NO_RERANKER = "none"


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Everything that an evaluation is made of.

    Attributes:
        files: transcripts, in the forms of `mem0-core import`, or one benchmark.
        questions: a file of questions; ``rules`` or ``model`` to make them from the transcripts. None takes those of a
            benchmark, and for other files those made by rules.
        recipes, embedders, rerankers: each recipe is evaluated with each embedder and each reranker, by their names or
            paths; an empty list means the configured one. ``none`` is a search without a reranker.
        sample: maximum number of questions.
        price: price of a million input tokens.
        infer: extract facts with the configured chat model, in place of whole messages.
        judge: answer the questions with the configured chat model, and judge the answers with it.
        compare: an earlier result, or the configuration of a second memory.
        suggest: suggest settings for the first memory, with `tokens_per_answer` as the price of tokens.
    """

    files: tuple[Path, ...]
    format: str | None = None
    user_id: str | None = None
    questions: str | None = None
    recipes: tuple[str, ...] = ()
    embedders: tuple[str, ...] = ()
    rerankers: tuple[str, ...] = ()
    settings: Settings = field(default_factory=Settings)
    sample: int = 300
    price: float | None = None
    infer: bool = False
    judge: bool = False
    requirements: tuple[Requirement, ...] = ()
    compare: Path | None = None
    suggest: bool = False
    tokens_per_answer: float = TOKENS_PER_ANSWER


def run_evaluation(
    plan: EvaluationPlan,
    config: MemoryConfig | None = None,
    *,
    llm: ChatModel | None = None,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Evaluate memory on the transcripts of a plan; the user's own store is neither read nor written.

    Args:
        config: configuration of the memory.
        llm: chat model, in place of the configured one.

    Raises:
        InputError: a file cannot be read, or there are no questions. ConfigError: the plan needs a chat model.
    """
    config = MemoryConfig() if config is None else config
    chat = _open_chat(plan, config, llm)
    transcripts, questions = _read_inputs(plan, chat)
    judge = ModelJudge(chat) if plan.judge and chat is not None else None
    with ExitStack() as stack:
        memories, models = _open_memories(plan, config, transcripts, stack, llm)
        arms: list[Arm] = [NoMemory(), WholeHistory(), RecentWindow(plan.settings.max_tokens), *memories]
        result = evaluate(arms, transcripts, questions, judge=judge, price=plan.price, on_progress=on_progress)
        result["ranking"] = rank_memories(result["arms"])
        result["receipt"] = make_receipt(plan.files, questions)
        result["models"] = models
        result["checks"] = check_requirements(result, plan.requirements, memories[0].name)
        if plan.compare is not None:
            result["comparison"] = _compare(plan, result, memories[0].name, transcripts, questions, stack, judge)
        if plan.suggest:
            price = plan.tokens_per_answer
            result["suggestion"] = suggest_settings(
                memories[0], transcripts, questions, tokens_per_answer=price, on_progress=on_progress
            )
    if judge is not None:
        result["notes"] = [f"The model read {judge.input_tokens:,} tokens and wrote {judge.output_tokens:,}."]
    return result


def _open_chat(plan: EvaluationPlan, config: MemoryConfig, llm: ChatModel | None) -> ChatModel | None:
    """Return the chat model, if the plan needs one.

    Raises:
        ConfigError: there is none.
    """
    if not plan.judge and plan.questions != BY_MODEL and not plan.infer:
        return None
    chat: ChatModel | None = resolve_component("llm", "complete", llm, config.llm)
    if chat is None:
        raise ConfigError(
            "judging answers, questions by a model and extracted facts need a chat model; name one with --llm-backend"
            " or the key 'llm' of the configuration"
        )
    return chat


def _read_inputs(plan: EvaluationPlan, chat: ChatModel | None) -> tuple[tuple[Transcript, ...], tuple[Question, ...]]:
    """Return the sampled questions, and the transcripts that they are about."""
    suite = read_suite(plan.files[0]) if len(plan.files) == 1 and plan.format is None else None
    if suite is None:
        transcripts = read_transcripts(plan.files, format=plan.format, user_id=plan.user_id)
        suite = Suite("", transcripts, ())
    questions = sample_questions(_choose_questions(plan, suite, chat), plan.sample)
    if not questions:
        raise InputError(
            "the chats give no questions: they state nothing that the rules read; pass a file of them with --questions"
        )
    named = {question.transcript for question in questions}
    return tuple(one for one in suite.transcripts if one.name in named), questions


def _choose_questions(plan: EvaluationPlan, suite: Suite, chat: ChatModel | None) -> Sequence[Question]:
    if plan.questions == BY_RULES or (plan.questions is None and not suite.questions):
        return make_questions(suite.transcripts)
    if plan.questions is None:
        return suite.questions
    if plan.questions == BY_MODEL and chat is not None:
        written = make_questions_with_model(chat, suite.transcripts, plan.sample)
        return [*written, *(one for one in make_questions(suite.transcripts) if not one.answerable)]
    return read_questions(Path(plan.questions), suite.transcripts)


def _compare(
    plan: EvaluationPlan,
    result: Mapping[str, Any],
    arm: str,
    transcripts: Sequence[Transcript],
    questions: Sequence[Question],
    stack: ExitStack,
    judge: ModelJudge | None,
) -> dict[str, Any]:
    """Compare the first memory with that of an earlier result, or with one by another configuration."""
    assert plan.compare is not None
    other = _read_result(plan.compare)
    if other is None:
        second = replace(plan, recipes=(), embedders=(), rerankers=())
        [memory], _ = _open_memories(second, load_config(plan.compare), transcripts, stack, None)
        others = evaluate([NoMemory(), memory], transcripts, questions, judge=judge, price=plan.price)
        return compare_arms(result["arms"][arm], others["arms"][memory.name], (arm, str(plan.compare)))
    earlier = next((one for one in other["arms"].values() if one["settings"] is not None), None)
    if earlier is None:
        raise InputError(f"{plan.compare} has no memory to compare with")
    return compare_arms(earlier, result["arms"][arm], (str(plan.compare), arm))


def _read_result(path: Path) -> Mapping[str, Any] | None:
    """Return an earlier result; None for a file with anything else."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}; pass an earlier result or a configuration") from error
    except ValueError:
        return None
    return document if isinstance(document, dict) and document.get("format") == RESULT_FORMAT else None


def _open_memories(
    plan: EvaluationPlan,
    config: MemoryConfig,
    transcripts: Sequence[Transcript],
    stack: ExitStack,
    llm: ChatModel | None,
) -> tuple[list[MemoryArm], dict[str, Any]]:
    """Return the memories to ask, and the models of each."""
    arms: list[MemoryArm] = []
    models: dict[str, Any] = {}
    embedders: tuple[str | None, ...] = plan.embedders or (None,)
    rerankers: tuple[str | None, ...] = plan.rerankers or (None,)
    recipes: tuple[str | None, ...] = plan.recipes or (None,)
    for embedder in embedders:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mem0-eval-")))
        without = config.replace(reranker=False) if plan.rerankers else config
        plain = Remembered(folder, transcripts, config=without, embedder=embedder, llm=llm, infer=plan.infer)
        stack.callback(plain.close)
        for reranker in rerankers:
            remembered = plain
            if reranker not in (None, NO_RERANKER):
                remembered = plain.with_reranker(reranker)
                stack.callback(remembered.close)
            described = describe_models(*remembered.models, (embedder, reranker))
            for recipe in recipes:
                named = " + ".join(filter(None, (embedder, reranker)))
                name = " ".join(["memory", *filter(None, (recipe, f"({named})" if named else None))])
                settings = replace(plan.settings, recipe=recipe)
                arms.append(MemoryArm(remembered, settings, name, citations=plan.judge))
                models[name] = described
    return arms, models


def check_page(page: Path) -> Path:
    """Return the JSON file of a report, after a check that both can be written.

    Raises:
        InputError: the folder does not exist, or the page has the name of the JSON file.
    """
    data = page.with_suffix(".json")
    if data == page:
        raise InputError(f"--out names the HTML report, not {str(page)!r}; the JSON file gets the same name")
    if not page.parent.is_dir():
        raise InputError(f"there is no folder {str(page.parent)!r}; pass a file in an existing one with --out")
    return data


def write_report(result: dict[str, Any], page: Path) -> tuple[Path, Path]:
    """Write the report and a JSON file with the same name; return both paths."""
    data = check_page(page)
    try:
        page.write_text(render_report(result), encoding="utf-8", errors="backslashreplace")
        data.write_text(json.dumps(result, ensure_ascii=False, indent=1), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise InputError(f"the report cannot be written: {error}; pass another file with --out") from error
    return page, data
