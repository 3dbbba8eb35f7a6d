"""Language models of half a megabyte with random weights: their answers are meaningless, but every part is real."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from mem0_core.interfaces import Tool, ToolCall

__all__ = [
    "CHAT_TEMPLATE",
    "QUESTION_MESSAGES",
    "SAMPLE_TOOLS",
    "TinyFacts",
    "byte_tokenizer",
    "check_calls",
    "save_gguf",
    "save_llama",
    "save_openvino",
]


class TinyFact(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["likes", "owns"]
    what: Annotated[str, Field(max_length=6)]
    since: int | None = None


class TinyFacts(BaseModel):
    """A schema for a random model, with short texts and lists."""

    model_config = ConfigDict(extra="forbid")

    facts: Annotated[list[TinyFact], Field(max_length=3)]


QUESTION_MESSAGES = [{"role": "system", "content": "Answer in JSON."}, {"role": "user", "content": "I like tea."}]


def _tool(name: str, **properties: Any) -> Tool:
    parameters = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return Tool(name, f"{name} it", parameters)


SAMPLE_TOOLS = [_tool("forget", id={"type": "boolean"}), _tool("keep", why={"enum": ["new", "true"]})]


def check_calls(calls: Sequence[ToolCall]) -> None:
    """Calls of TOOLS, some of each, with arguments that fit."""
    assert {call.name for call in calls} == {"forget", "keep"}
    for call in calls:
        assert isinstance(call.arguments, dict)
        if call.name == "forget":
            assert isinstance(call.arguments.pop("id"), bool)
        else:
            assert call.arguments.pop("why") in ("new", "true")
        assert not call.arguments


CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
"""A chat template as models bring them (Zephyr's)."""

LAYERS, DIM, HIDDEN, HEADS = 2, 64, 128, 4


def save_gguf(
    path: Path, *, seed: int = 7, context: int = 4096, template: str | None = CHAT_TEMPLATE, architecture: str = "llama"
) -> Path:
    """Write a Llama with bytes as tokens (259 with the three markers), by the `gguf` package alone."""
    import gguf

    random = np.random.default_rng(seed)
    pieces = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL, *[gguf.TokenType.BYTE] * 256]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(context)
    writer.add_embedding_length(DIM)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(DIM // HEADS)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(pieces)
    writer.add_token_scores([0.0] * len(pieces))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_space_prefix(False)
    if template is not None:
        writer.add_chat_template(template)
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (len(pieces), DIM), "output": (len(pieces), DIM)}
    for layer in range(LAYERS):
        shapes |= {f"blk.{layer}.attn_{part}": (DIM, DIM) for part in ("q", "k", "v", "output")}
        shapes |= {f"blk.{layer}.ffn_{part}": (HIDDEN, DIM) for part in ("gate", "up")}
        shapes[f"blk.{layer}.ffn_down"] = (DIM, HIDDEN)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", random.normal(0, 0.3, shape).astype(np.float32))
    norms = ["output_norm", *(f"blk.{layer}.{part}_norm" for layer in range(LAYERS) for part in ("attn", "ffn"))]
    for name in norms:
        writer.add_tensor(f"{name}.weight", np.ones(DIM, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def byte_tokenizer(template: str | None = CHAT_TEMPLATE) -> Any:
    """Return a transformers tokenizer with bytes and three markers as tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: place for place, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(marker, special=True) for marker in ("<unk>", "<s>", "</s>")])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    fast.chat_template = template
    return fast


def save_llama(folder: Path, *, context: int = 4096, template: str | None = CHAT_TEMPLATE, padding: int = 0) -> Path:
    """A random LlamaForCausalLM of transformers, with its tokenizer, and `padding` outputs that are no token."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = byte_tokenizer(template)
    torch.manual_seed(7)
    config = LlamaConfig(
        vocab_size=len(tokenizer) + padding,
        hidden_size=DIM,
        intermediate_size=HIDDEN,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=context,
        initializer_range=0.3,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_openvino(folder: Path, *, template: str | None = CHAT_TEMPLATE, seed: int = 7) -> Path:
    """Write a model in OpenVINO's format with its tokenizer; a random table gives the next token."""
    import openvino
    import openvino_tokenizers
    from openvino import opset13 as ops

    tokenizer = byte_tokenizer(template)
    shapes: dict[str, tuple[list[int], type]] = {
        "input_ids": ([-1, -1], np.int64),
        "attention_mask": ([-1, -1], np.int64),
        "position_ids": ([-1, -1], np.int64),
        "beam_idx": ([-1], np.int32),
    }
    inputs = {name: ops.parameter(shape, kind, name=name) for name, (shape, kind) in shapes.items()}
    for name, parameter in inputs.items():
        parameter.output(0).set_names({name})
    scores = np.random.default_rng(seed).normal(0, 1, (len(tokenizer), len(tokenizer))).astype(np.float32)
    gathered = ops.gather(ops.constant(scores), inputs["input_ids"], ops.constant(np.int64(0)))
    # OpenVINO's pipeline looks for these in the network, though a table needs no more than the last token.
    unused = ops.convert(ops.reduce_sum(inputs["attention_mask"], ops.constant(np.array([0, 1]))), "f32")
    logits = ops.result(ops.add(gathered, ops.multiply(unused, ops.constant(np.float32(0)))))
    model = openvino.Model([logits], [*inputs.values()], "table")
    model.outputs[0].get_tensor().set_names({"logits"})
    folder.mkdir(parents=True, exist_ok=True)
    openvino.save_model(model, folder / "openvino_model.xml")
    read, write = openvino_tokenizers.convert_tokenizer(tokenizer, with_detokenizer=True)
    openvino.save_model(read, folder / "openvino_tokenizer.xml")
    openvino.save_model(write, folder / "openvino_detokenizer.xml")
    tokenizer.save_pretrained(folder)
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    ends = {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id}
    (folder / "generation_config.json").write_text(json.dumps(ends), encoding="utf-8")
    return folder
