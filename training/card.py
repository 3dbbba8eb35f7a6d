"""Write the model card of an embedder from the records of its run: ``python -m training.card --help``."""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from training.evaluate import format_table
from training.sources import SOURCES

__all__ = ["main", "write_card"]

TEMPLATE = """# {name}

An embedding model of {size:.1f} million parameters for long-term memory: it places a turn, message or passage near the
questions that it answers. It begins with `{base}` and costs the same.

## Training

- Loss: InfoNCE (scale {scale}) over mined and in-batch negatives, and a pull of plain passages towards the frozen
  vectors with weight {pull}. The last {layers} layers were trained, at a learning rate of {rate}; the embeddings of
  words were not.
- Steps: {step} of {steps} (the best on validation), {questions} questions each, {seconds:.0f} seconds on {device},
  {threads} thread(s), seed {seed}. Machine: {machine}.
- Blend: {share:.0%} trained weights, the rest frozen. Share and checkpoint were chosen on the validation split.
- SHA-256 of `model.safetensors`: `{digest}`

## Data

{data}

CC BY and CC BY-SA ask for attribution: the sources above are named for this reason. {share_alike}
No question or text of LoCoMo, BEAM or MuSiQue was used.

## Figures

Validation pools, in percent, with 95 % intervals of the difference to the base on the same questions.

{figures}
{product}
## Limits

- English only. Texts beyond 256 tokens are cut.
- Validation pools are cut, so the figures above are higher than those over whole histories.
- One run with one seed. Differences within their interval may not repeat.
- {worst}
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write ``README.md`` into the folder of the model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="folder with run.json and model/")
    parser.add_argument("--figures", type=Path, required=True, help="JSON of training.evaluate")
    parser.add_argument("--product", type=Path, help="JSON of training.product")
    parser.add_argument("--name", default="mem0-minilm")
    options = parser.parse_args(arguments)
    product = None if options.product is None else json.loads(options.product.read_text(encoding="utf-8"))
    figures = json.loads(options.figures.read_text(encoding="utf-8"))
    print(write_card(options.run, options.name, figures, product))


def write_card(run: Path, name: str, figures: Mapping[str, Any], product: Mapping[str, Any] | None) -> Path:
    """Fill the template from the records, write it next to the weights and return its path."""
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    settings = record["options"]
    weights = (run / "model" / "model.safetensors").read_bytes()
    counts: Mapping[str, int] = record["questions"]
    trained: Mapping[str, Any] = next((groups for model, groups in figures.items() if Path(model) == run / "model"), {})
    text = TEMPLATE.format(
        **{key: settings[key] for key in ("scale", "pull", "layers", "rate", "steps", "questions", "seed", "threads")},
        name=name,
        size=len(weights) / 2e6,  # two bytes a parameter
        base=Path(settings["base"]).name,
        step=record["step"],
        seconds=record["seconds"],
        device=settings["device"],
        machine=f"{platform.machine()}, {platform.system()}",
        share=record["share"],
        digest=hashlib.sha256(weights).hexdigest(),
        data=_data_table(counts),
        share_alike=_share_alike(counts),
        figures=format_table(figures),
        product="" if product is None else f"\n{_product_table(product)}\n",
        worst=_worst(trained),
    )
    card = run / "model" / "README.md"
    card.write_text(text, encoding="utf-8")
    return card


def _data_table(counts: Mapping[str, int]) -> str:
    lines = ["| source | kind | questions | license |", "|---|---|---|---|"]
    for name, count in sorted(counts.items()):
        lines.append(f"| {name} | {SOURCES[name].kind} | {count} | {SOURCES[name].license} |")
    return "\n".join(lines)


def _share_alike(counts: Mapping[str, int]) -> str:
    found = sorted(name for name in counts if SOURCES[name].share_alike)
    if not found:
        return "No source under a share-alike license was trained on."
    return f"Sources under share-alike licenses were trained on: {', '.join(found)}."


def _product_table(product: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> str:
    labels = ("R@5", "R@10", "MRR")
    lines = ["| set | model | R@5 | R@10 | MRR | R@10 against the base |", "|---|---|---|---|---|---|"]
    for name, models in product.items():
        for model, figures in models.items():
            lead = "{:+.1f} [{:.1f}, {:.1f}]".format(*figures["dR@10"])
            cells = [f"{figures[label][0]:.1f}" for label in labels]
            lines.append("| " + " | ".join([name, Path(model).name, *cells, lead]) + " |")
    return "\n".join(lines)


def _worst(groups: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Return a sentence on the source with the largest loss."""
    leads = {name: figures["dMRR"][0] for name, figures in groups.items() if name in SOURCES}
    if not leads or min(leads.values()) >= 0:
        return "No validation source lost in MRR."
    ordered = sorted((lead, name) for name, lead in leads.items() if lead < 0)
    losses = ", ".join(f"{name} ({lead:+.1f})" for lead, name in ordered)
    return f"Validation sources that lost in MRR: {losses}."


if __name__ == "__main__":
    main()
