"""Growth of the work for adversarial texts: every pure function that reads text, `add` and `search`.

Thirteen kinds of text grow from 1 kB to 1 MB. For each function and kind the bench fits the exponent of CPU time over
length. CPU time is that of the calling thread; of a memory, that of the process. A function that has become too slow
is not called with longer texts, so the bench ends in any case.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.loop import measure_lag
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report
from mem0_core import AsyncMemory, Memory
from mem0_core.admin.replies import encode_subject
from mem0_core.domain.filters import parse_filters
from mem0_core.domain.mention_index import words_of
from mem0_core.domain.normalization import normalize
from mem0_core.domain.records import Message, content_hash, entity_key, is_valid_text, mentions_name, same_fact_key
from mem0_core.domain.secrets import redact, redact_url
from mem0_core.domain.spaces import check_space_name
from mem0_core.domain.suggestions import suggest
from mem0_core.domain.timestamps import parse_date, parse_timestamp
from mem0_core.domain.trust import parse_source
from mem0_core.errors import Mem0Error
from mem0_core.graph.query_language import parse as parse_graph_query
from mem0_core.interchange._chats import read_text
from mem0_core.interchange._csv import protect_cell
from mem0_core.interfaces import Reply
from mem0_core.language._name_words import fold_name, get_formal_names, split_name
from mem0_core.language._phrases import detect_language, read_phrases
from mem0_core.language._question_chains import find_chain
from mem0_core.language._tokens import tokenize
from mem0_core.language.families import family_of_label
from mem0_core.language.introductions import read_introductions
from mem0_core.language.messages import (
    check_metadata,
    format_transcript,
    is_structured_output,
    mentions_speaker,
    parse_messages,
    strip_recalled,
)
from mem0_core.language.name_similarity import is_part_of
from mem0_core.language.naming import get_given_name
from mem0_core.language.near_duplicates import find_restatements, restates
from mem0_core.language.parsed_query import parse_query
from mem0_core.language.prompt_data import encode_data, escape_line, quote_text
from mem0_core.language.question import compile_question
from mem0_core.language.relation_affinity import are_opposed, kind_affinity, label_affinity, sex_of_label, sex_of_term
from mem0_core.language.rule_extractor import entities, extract_by_rules
from mem0_core.language.shown_texts import ShownTexts
from mem0_core.language.statements import read_all_statements, slots_of
from mem0_core.language.temporal import find_event_days, is_about_time, parse_time_spans
from mem0_core.language.terms import analyze_text, extract_names, extract_terms, split_words
from mem0_core.language.utterances import is_question, is_statement
from mem0_core.llm._json_replies import read_json
from mem0_core.llm.graph_replies import read_entities, read_fused, read_outdated, read_refined, read_relations
from mem0_core.llm.replies import read_citations, read_facts, read_operations, read_scores, read_summary
from mem0_core.llm.tokens import estimate_tokens
from mem0_core.llm.triplet_lines import read_triplets, to_third_person
from mem0_core.recall._ranking import bm25
from mem0_core.recall._timeline import has_value, is_same_value
from mem0_core.recall.rerank import compute_lexical_scores
from mem0_core.server._pages import Cursor
from mem0_core.server._problems import HttpError
from mem0_core.server._replies import RequestIdentity
from mem0_core.server._requests import find_secret, pick, read_flag, read_number
from mem0_core.server.inspector._markup import clean
from mem0_core.server.webhooks import Webhook, sign_webhook
from mem0_core.views.files._paths import derive_path, normalize_path

__all__ = ["FUNCTIONS", "KINDS", "measure"]

TODAY = date(2026, 5, 2)
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
MAX_CALL_SECONDS = 4.0
MIN_FITTED_SECONDS = 0.02  # shorter times are noise of caches and of the allocator
MAX_EXPONENT = 1.15
MAX_SECONDS = 1.0
MAX_HELD_MS = 50


def _repeat(unit: str) -> Callable[[int], str]:
    return lambda size: (unit * (size // len(unit) + 1))[:size]


def _count(sentence: str) -> Callable[[int], str]:
    def build(size: int) -> str:
        parts: list[str] = []
        length = number = 0
        while length < size:
            parts.append(sentence.format(number))
            length += len(parts[-1])
            number += 1
        return "".join(parts)[:size]

    return build


def _scramble(size: int) -> str:
    source = random.Random(size)
    letters = "aeIM'\"()[]{}<>:;,.!?-_/\\ \n\t\u2019\u0301\u200b\u4f60\u0645 0179"
    return "".join(source.choices(letters, k=size))


def _nest(size: int) -> str:
    return '{"facts": ' + "[" * (size // 2) + "]" * (size // 2 - 12) + "}"


KINDS: dict[str, Callable[[int], str]] = {
    "relations": _count("My friend P{0} lives in T{0}. "),
    "one clause": _count("and my friend P{0} of T{0} "),
    "combining marks": lambda size: "e" + ("\u0323\u0301\u0316" * size)[: size - 1],
    "spaces and line breaks": _repeat("  \n"),
    "capital letters": _repeat("I LIVE IN ROME and "),
    "dates": _count("in {0}, on May 3, 20{0}, yesterday, "),
    "quotes": _repeat('"I said \u201cme '),
    "brackets": _nest,
    "one word": _repeat("a"),
    "kinship": _repeat("my sister's husband's mother's "),
    "recalled blocks": _repeat("<memories>\n{\u2028</memories "),
    "dashes and commas": _repeat("A - b, - c; "),
    "scrambled": _scramble,
}
"""Thirteen kinds of text, each a function of its length."""


def _reply(text: str) -> Reply:
    return Reply(text=text)


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "normalize": lambda text: normalize("NFKC", text),
    "content_hash": content_hash,
    "redact": lambda text: redact(text, ["secret-key"]),
    "redact_url": redact_url,
    "suggest": lambda text: suggest(text, ("limit", "filters", "user_id")),
    "parse_date": lambda text: parse_date(text, "day"),
    "check_space_name": check_space_name,
    "fold_name": fold_name,
    "split_name": split_name,
    "get_formal_names": get_formal_names,
    "get_given_name": get_given_name,
    "tokenize": lambda text: tokenize(text, "english"),
    "read_phrases": lambda text: read_phrases(text, "spanish"),
    "find_chain": find_chain,
    "mentions_speaker": mentions_speaker,
    "escape_line": escape_line,
    "quote_text": lambda text: quote_text(f"{text} "),  # one that ends in a space takes twice as long, here and below
    "read_json": lambda text: read_json(_reply(text)),
    "read_text": lambda text: list(read_text(text)),
    "protect_cell": protect_cell,
    "has_value": lambda text: has_value(text, text),
    "is_same_value": lambda text: is_same_value(text, text[::-1]),
    "bm25": lambda text: bm25(text, [text]),
    "compute_lexical_scores": lambda text: compute_lexical_scores(text, [text, "tea"]),
    "normalize_path": normalize_path,
    "derive_path": lambda text: derive_path(text, "ab"),
    "inspector markup": clean,
    "is_valid_text": is_valid_text,
    "entity_key": entity_key,
    "same_fact_key": same_fact_key,
    "mentions_name": lambda text: mentions_name(text, "Ann Lee"),
    "mentions_name, long name": lambda text: mentions_name("Ann Lee met Bob", text),
    "words_of": words_of,
    "parse_timestamp": parse_timestamp,
    "parse_filters": lambda text: parse_filters({"city": {"contains": text}}),
    "analyze_text": analyze_text,
    "extract_terms": extract_terms,
    "extract_names": extract_names,
    "split_words": split_words,
    "entities": entities,
    "extract_by_rules": lambda text: extract_by_rules(text, speaker="ann"),
    "read_introductions": read_introductions,
    "read_all_statements": read_all_statements,
    "slots_of": slots_of,
    "is_statement": is_statement,
    "is_question": is_question,
    "parse_time_spans": lambda text: parse_time_spans(text, TODAY),
    "find_event_days": lambda text: find_event_days(text, TODAY),
    "is_about_time": is_about_time,
    "restates": lambda text: restates(text, text[::-1]),
    "find_restatements": lambda text: find_restatements([text, f"{text} again", text]),
    "ShownTexts": lambda text: text in ShownTexts([text]),
    "is_part_of": lambda text: is_part_of(text, f"{text} Lee"),
    "family_of_label": family_of_label,
    "label_affinity": lambda text: label_affinity("sister", text),
    "label_affinity, long term": lambda text: label_affinity(text, "has_sister"),
    "kind_affinity": lambda text: kind_affinity(text, text),
    "are_opposed": lambda text: are_opposed(text, text),
    "sex_of_term": sex_of_term,
    "sex_of_label": sex_of_label,
    "parse_query": parse_query,
    "parse_messages": parse_messages,
    "strip_recalled": strip_recalled,
    "format_transcript": lambda text: format_transcript([Message("user", f"{text} ", name=f"{text} ")]),
    "to_third_person": lambda text: to_third_person([Message("user", f"{text} ")], "Ann"),
    "encode_data": encode_data,
    "estimate_tokens": estimate_tokens,
    "read_facts": lambda text: read_facts(_reply(text)),
    "read_operations": lambda text: read_operations(_reply(text), ids={"0": "x"}, texts={"0": "y"}, facts=["z"]),
    "read_summary": lambda text: read_summary(_reply(text)),
    "read_scores": lambda text: read_scores(_reply(text), count=3),
    "read_citations": lambda text: read_citations(text, {"1": "x"}),
    "read_entities": lambda text: read_entities(_reply(text), self_name="ann"),
    "read_relations": lambda text: read_relations(_reply(text), self_name="ann"),
    "read_outdated": lambda text: read_outdated(_reply(text), existing=[], self_name="ann"),
    "read_refined": lambda text: read_refined(_reply(text), existing=[], self_name="ann"),
    "read_fused": lambda text: read_fused(_reply(text), ids={}, texts={}, relations={}, self_name="ann"),
    "read_triplets": lambda text: read_triplets(_reply(text), text=text, self_name="ann"),
    "parse_graph_query": parse_graph_query,
    "compile_question": compile_question,
    "detect_language": detect_language,
    "is_structured_output": is_structured_output,
    "check_metadata": lambda text: check_metadata({"a": text, text: [text]}, "the add"),
    "parse_source": parse_source,
    "Cursor.parse": Cursor.parse,
    "read_number": lambda text: read_number({"limit": text}, "limit"),
    "read_flag": lambda text: read_flag({"ended": text}, "ended"),
    "pick": lambda text: pick({text: text}, ("query",)),
    "find_secret": lambda text: find_secret({"authorization": f"Bearer {text}"}),
    "RequestIdentity.seal": lambda text: RequestIdentity("a", text, b"r", text).seal(text.encode(errors="replace")),
    "encode_subject": lambda text: encode_subject({"user_id": text}, b"name"),
    "Webhook": lambda text: Webhook(f"https://example.org/{text}", text),
    "sign_webhook": lambda text: sign_webhook(text, text, text, text.encode(errors="replace")),
}
"""Pure functions that read a text, by name."""


def measure(plan: Plan) -> Report:
    report = Report("adversarial")
    sizes = [size for size in SIZES if size <= plan.longest_text]
    for name, call in FUNCTIONS.items():
        growths = {kind: _time_growth(call, build, sizes) for kind, build in KINDS.items()}
        _add_worst(report, "pure functions", name, growths)
    for verb in ("add", "search"):
        growths = {kind: _time_memory(verb, build, sizes) for kind, build in KINDS.items()}
        for kind, growth in growths.items():
            _add_worst(report, verb, kind, {kind: growth})
    asyncio.run(_hold_loop(KINDS["scrambled"](1_000)))  # first use loads modules and tables
    for kind, build in KINDS.items():
        held = 1000 * asyncio.run(_hold_loop(build(min(100_000, plan.longest_text))))
        report.add("event loop of AsyncMemory at 100 kB", kind, held, "ms", Bar("<=", MAX_HELD_MS))
    return report


Growth = list[tuple[int, float]]


def _add_worst(report: Report, section: str, name: str, growths: dict[str, Growth]) -> None:
    """Add the seconds at 100 kB and the exponent of the kinds that are worst in them."""
    seconds = {
        kind: max((spent for size, spent in growth if size <= 100_000), default=0.0) for kind, growth in growths.items()
    }
    slowest = max(seconds, key=seconds.__getitem__)
    report.add(section, f"{name}: seconds to 100 kB ({slowest})", seconds[slowest], "s", Bar("<=", MAX_SECONDS))
    exponents = {kind: fit_exponent(growth) for kind, growth in growths.items()}
    steepest = max(exponents, key=exponents.__getitem__)
    report.add(section, f"{name}: exponent ({steepest})", exponents[steepest], "", Bar("<=", MAX_EXPONENT))


def fit_exponent(growth: Sequence[tuple[int, float]]) -> float:
    """Return the slope of log(seconds) over log(size), of the times that are long enough to tell; else 0."""
    points = [(math.log(size), math.log(spent)) for size, spent in growth if spent >= MIN_FITTED_SECONDS]
    if len(points) < 2:
        return 0.0
    middle_x, middle_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    above = sum((x - middle_x) * (y - middle_y) for x, y in points)
    return float(above / sum((x - middle_x) ** 2 for x, _ in points))


def _time_growth(call: Callable[[str], object], build: Callable[[int], str], sizes: Sequence[int]) -> Growth:
    growth: Growth = []
    for size in sizes:
        text = build(size)
        begun = time.thread_time()
        with contextlib.suppress(Mem0Error, HttpError):  # a refusal is an answer
            call(text)
        growth.append((size, time.thread_time() - begun))
        if growth[-1][1] > MAX_CALL_SECONDS:
            break
    return growth


def _time_memory(verb: str, build: Callable[[int], str], sizes: Sequence[int]) -> Growth:
    growth: Growth = []
    for size in sizes:
        text = build(size)
        with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder, Memory({"path": folder}) as memory:
            memory.add("My sister Ann lives in Oslo.", user_id="u")
            memory.search("Where does Ann live?", user_id="u")
            begun = time.process_time()
            with contextlib.suppress(Mem0Error):
                getattr(memory, verb)(text, user_id="u")
            growth.append((size, time.process_time() - begun))
        if growth[-1][1] > MAX_CALL_SECONDS:
            break
    return growth


async def _hold_loop(text: str) -> float:
    """Return the CPU seconds of the loop's thread between two callbacks during an add and a search."""
    with tempfile.TemporaryDirectory(prefix="mem0-bench-") as folder:
        async with AsyncMemory({"path": Path(folder)}) as memory:
            await memory.add("My sister Ann lives in Oslo.", user_id="u")
            await memory.search("Where does Ann live?", user_id="u")
            gc.collect()
            gc.freeze()  # a full collection takes 0.1 s for the modules of the bench, whatever the text
            with measure_lag() as lag:
                for call in (memory.add, memory.search):
                    await _try_call(call, text)
            gc.unfreeze()
    return float(lag.busy)


async def _try_call(call: Callable[..., Any], text: str) -> None:
    with contextlib.suppress(Mem0Error):
        await call(text, user_id="u")
