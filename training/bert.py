"""BERT in plain torch: tensors named as in the safetensors files of the Hugging Face hub, tokens of the product."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as functional
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import nn

from mem0_core.providers._wordpiece import WordPiece

__all__ = ["Bert", "Layer", "Tokenizer", "batch_by_length", "encode_texts", "load_bert", "pad_rows"]

_BATCH_TOKENS = 4096  # of one forward pass without gradients, padding included
_MAX_BATCH_ROWS = 256


class _SelfAttention(nn.Module):
    def __init__(self, dims: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(dims, dims) for _ in range(3))


class _Output(nn.Module):
    def __init__(self, inner: int, dims: int, eps: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inner, dims)
        self.LayerNorm = nn.LayerNorm(dims, eps=eps)


class _Attention(nn.Module):
    def __init__(self, dims: int, eps: float) -> None:
        super().__init__()
        self.self = _SelfAttention(dims)
        self.output = _Output(dims, dims, eps)


class _Intermediate(nn.Module):
    def __init__(self, dims: int, inner: int) -> None:
        super().__init__()
        self.dense = nn.Linear(dims, inner)


class Layer(nn.Module):
    """A layer of attention and a dense one, each followed by a normalization."""

    def __init__(self, dims: int, inner: int, heads: int, eps: float) -> None:
        super().__init__()
        self.attention = _Attention(dims, eps)
        self.intermediate = _Intermediate(dims, inner)
        self.output = _Output(inner, dims, eps)
        self._heads = heads

    def forward(self, hidden: Any, mask: Any, dropout: float) -> Any:
        rows, tokens, dims = hidden.shape
        own = self.attention.self
        parts = [
            dense(hidden).view(rows, tokens, self._heads, dims // self._heads).transpose(1, 2)
            for dense in (own.query, own.key, own.value)
        ]
        mixed = functional.scaled_dot_product_attention(*parts, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(rows, tokens, dims)
        output = self.attention.output
        hidden = output.LayerNorm(hidden + functional.dropout(output.dense(mixed), dropout, self.training))
        inner = functional.gelu(self.intermediate.dense(hidden))
        return self.output.LayerNorm(hidden + functional.dropout(self.output.dense(inner), dropout, self.training))


class _Embeddings(nn.Module):
    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        dims = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], dims)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], dims)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], dims)
        self.LayerNorm = nn.LayerNorm(dims, eps=config["layer_norm_eps"])

    def forward(self, ids: Any, types: Any) -> Any:
        positions = self.position_embeddings.weight[: ids.shape[1]]
        segments = self.token_type_embeddings.weight[0] if types is None else self.token_type_embeddings(types)
        return self.LayerNorm(self.word_embeddings(ids) + positions + segments)


class _Encoder(nn.Module):
    def __init__(self, config: dict[str, Any], layers: int) -> None:
        super().__init__()
        sizes = (config["hidden_size"], config["intermediate_size"], config["num_attention_heads"])
        self.layer = nn.ModuleList(Layer(*sizes, config["layer_norm_eps"]) for _ in range(layers))


class Bert(nn.Module):
    """An encoder with absolute positions and the exact GELU.

    Args:
        config: the content of ``config.json``, complete: see `load_bert`.
        layers: number of layers; default: that of `config`.
    """

    def __init__(self, config: dict[str, Any], layers: int | None = None) -> None:
        super().__init__()
        self.config = config
        self.embeddings = _Embeddings(config)
        self.encoder = _Encoder(config, config["num_hidden_layers"] if layers is None else layers)
        self.dropout = 0.0

    @property
    def layers(self) -> Any:
        return self.encoder.layer

    def train_last(self, count: int) -> list[Any]:
        """Let only the last layers be trained; return their parameters."""
        self.requires_grad_(False)
        for layer in self.layers[len(self.layers) - count :]:
            layer.requires_grad_(True)
        return [one for one in self.parameters() if one.requires_grad]

    def forward(self, ids: Any, types: Any = None, frozen: int = 0) -> Any:
        """Return the last states, (rows, tokens, dims); the first `frozen` layers are computed without gradients."""
        mask = (ids != self.config["pad_token_id"])[:, None, None, :]
        with torch.set_grad_enabled(torch.is_grad_enabled() and not frozen):
            hidden = self.embeddings(ids, types)
            for layer in self.layers[:frozen]:
                hidden = layer(hidden, mask, self.dropout)
        for layer in self.layers[frozen:]:
            hidden = layer(hidden, mask, self.dropout)
        return hidden

    def pool(self, hidden: Any, ids: Any) -> Any:
        """Return the mean of the tokens' states."""
        weights = (ids != self.config["pad_token_id"])[..., None].to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1)

    def embed(self, ids: Any) -> Any:
        """Return a unit vector per row of token ids."""
        return functional.normalize(self.pool(self(ids), ids).float(), dim=1)


def load_bert(folder: Path, layers: Sequence[int] | None = None) -> Bert:
    """Load the weights of a sentence-transformers folder, in float32.

    Args:
        layers: which layers to take, in order; default: all. A small model begins with some layers of a large one.
    """
    tensors = {
        name.removeprefix("bert."): tensor.float() for name, tensor in load_file(folder / "model.safetensors").items()
    }
    config = complete_config(json.loads((folder / "config.json").read_text(encoding="utf-8")), tensors)
    chosen = range(config["num_hidden_layers"]) if layers is None else layers
    model = Bert(config, len(chosen))
    state = {}
    for name in model.state_dict():
        parts = name.split(".")
        if parts[0] == "encoder":
            parts[2] = str(chosen[int(parts[2])])
        state[name] = tensors[".".join(parts)]
    model.load_state_dict(state)
    return model


def complete_config(config: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with the sizes that the tensors show."""
    words = tensors["embeddings.word_embeddings.weight"]
    layers = {int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer.")}
    shown = {
        "vocab_size": words.shape[0],
        "hidden_size": words.shape[1],
        "max_position_embeddings": tensors["embeddings.position_embeddings.weight"].shape[0],
        "type_vocab_size": tensors["embeddings.token_type_embeddings.weight"].shape[0],
        "intermediate_size": tensors["encoder.layer.0.intermediate.dense.weight"].shape[0],
        "num_hidden_layers": len(layers),
    }
    return {"layer_norm_eps": 1e-12, "pad_token_id": 0, **config, **shown}


class Tokenizer:
    """Token ids of texts, cut as the product cuts them."""

    def __init__(self, folder: Path, max_tokens: int = 256) -> None:
        found = WordPiece.read(folder / "tokenizer.json", max_tokens)
        if found is None:
            raise ValueError(f"{folder / 'tokenizer.json'} is not the tokenizer of an uncased BERT")
        self.wordpiece = found

    def encode(self, texts: Sequence[str], max_tokens: int) -> list[list[int]]:
        """Return the ids of each text, at most `max_tokens` with the markers at both ends."""
        rows = [self.wordpiece.encode(text) for text in texts]
        return [row if len(row) <= max_tokens else [*row[: max_tokens - 1], row[-1]] for row in rows]


def pad_rows(rows: Sequence[Sequence[int]], device: Any, pad: int = 0) -> Any:
    """Return rows of ids as one tensor."""
    longest = max(map(len, rows))
    padded = [[*row, *[pad] * (longest - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.long, device=device)


def batch_by_length(
    rows: Sequence[Sequence[int]], max_tokens: int = _BATCH_TOKENS, max_rows: int = _MAX_BATCH_ROWS
) -> Iterator[list[int]]:
    """Yield places of rows of similar length; a batch has at most `max_tokens` tokens with its padding."""
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
    batch: list[int] = []
    for place in order:
        if batch and (len(batch) == max_rows or (len(batch) + 1) * len(rows[place]) > max_tokens):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def encode_texts(
    model: Bert, tokenizer: Tokenizer, texts: Sequence[str], max_tokens: int, *, batch_tokens: int = _BATCH_TOKENS
) -> NDArray[np.float32]:
    """Return unit vectors of texts, (n, dims); equal texts are computed once."""
    unique = list(dict.fromkeys(texts))
    rows = tokenizer.encode(unique, min(max_tokens, model.config["max_position_embeddings"]))
    vectors = np.zeros((len(rows), model.config["hidden_size"]), np.float32)
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    with torch.inference_mode():
        for batch in batch_by_length(rows, batch_tokens):
            ids = pad_rows([rows[place] for place in batch], device, model.config["pad_token_id"])
            vectors[batch] = model.embed(ids).cpu().numpy()
    model.train(was_training)
    places = {text: place for place, text in enumerate(unique)}
    return vectors[[places[text] for text in texts]]
