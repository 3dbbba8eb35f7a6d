"""Build a component from an instance, ``"provider:model"``, the name of a model, or ``{"provider", "config"}``.

Third-party providers register a callable under the entry-point groups ``mem0_core.llm``, ``mem0_core.embedder``,
``mem0_core.reranker`` and ``mem0_core.vector_store``; it receives the keys of ``config`` as keyword arguments.

An instance may also be a model of a framework with an installed adapter: a callable under the entry-point group
``mem0_core.adapters``, named like the top-level module of the framework's classes. It receives the kind of component
and the instance (for a vector store, ``source`` too, as a keyword argument), and returns an object with our protocol::

    [project.entry-points."mem0_core.adapters"]
    langchain_core = "mem0_langchain.models:adapt"
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from mem0_core.catalog import (
    BASE_URL_KEYS,
    BASE_URLS,
    CLIENT_ONLY_STORES,
    FRAMEWORK_PROVIDERS,
    KEY_VARIABLES,
    MODULES,
    PACKAGED_MODELS,
    PGVECTOR_ONLY_KEYS,
    POSTGRES_VECTOR_STORES,
    PROVIDERS,
    ComponentKind,
    find_model_provider,
)
from mem0_core.domain.secrets import find_secrets, is_secret_name, mentions, redact, redact_url, reveal
from mem0_core.domain.suggestions import describe_value, find_nearest, suggest
from mem0_core.errors import ConfigError, MissingExtraError

_NON_FRAMEWORK_MODULES = sys.stdlib_module_names | {"mem0_core", "pydantic"}
"""Top-level modules with classes that need no adapter."""

_FRAMEWORK_PACKAGE, _FRAMEWORK_ENTRY = "mem0-langchain", "langchain"
"""The package whose entry point builds `FRAMEWORK_PROVIDERS`, and the name of the entry point."""


_FOLDER_PROVIDERS = ("local", "numpy", "onnx", "openvino")
"""Providers whose models are folders, by their key ``path``; others take a folder as their model."""


def build_component(kind: ComponentKind, spec: Any, **wiring: Any) -> Any:
    """Make the component that `spec` describes; an instance is returned as it is, a framework's by its adapter.

    Raises:
        ConfigError: the provider is unknown, or does not know one of the keys.
        MissingExtraError: a library the provider needs is not installed.
    """
    if isinstance(spec, str):
        provider, config = _parse_name(kind, spec)
    elif isinstance(spec, Mapping):
        provider, config = _parse_mapping(kind, spec)
    elif hasattr(spec, "provider") and hasattr(spec, "config"):  # a `ComponentConfig`
        provider, config = spec.provider, spec.config
    else:
        return _adapt(kind, spec, wiring)
    config, failure = reveal(config), None
    secrets = find_secrets(config)
    try:
        return _build(kind, provider, config, wiring)
    except Exception as error:
        if not mentions(error, secrets):
            raise
        failure = ConfigError(redact(str(error), secrets))
    raise failure  # outside of the handler: the error that quotes a secret is not chained


def _build(kind: ComponentKind, provider: str, config: Mapping[str, Any], wiring: Mapping[str, Any]) -> Any:
    maker = _resolve_provider(kind, provider)
    keys = _provider_kwargs(kind, provider, config)
    _check_keys(f"{kind}.config", provider, maker, keys, wiring)
    try:
        return maker(**keys, **wiring)
    except TypeError as error:
        raise ConfigError(f"{kind}.config ({provider}): {error}") from error
    except ConfigError as error:
        if type(error) is not ConfigError or str(error).startswith(kind):
            raise
        raise ConfigError(f"{kind}.config ({provider}): {error}") from error


def check_spec(kind: ComponentKind, spec: str | Mapping[str, Any]) -> None:
    """Check that the provider of a description exists, without importing it.

    Raises:
        ConfigError: the description or its provider is unknown; the message suggests the nearest name.
        MissingExtraError: the provider needs packages that are not installed.
    """
    provider, _ = _parse_name(kind, spec) if isinstance(spec, str) else _parse_mapping(kind, spec)
    check_provider(kind, provider)


def check_provider(kind: ComponentKind, name: str) -> None:
    """Check that a provider exists, without importing it.

    Raises:
        ConfigError: the provider is unknown; the message suggests the nearest name.
        MissingExtraError: the provider needs packages that are not installed.
    """
    if name in PROVIDERS[kind]:
        return
    packages = FRAMEWORK_PROVIDERS.get(kind, {}).get(name)
    if packages is None:
        if name not in _plugin_providers(kind):
            if kind == "vector_store" and name in CLIENT_ONLY_STORES:
                raise ConfigError(
                    f"vector_store: the provider {name!r} is not built from its keys: {CLIENT_ONLY_STORES[name]};"
                    " choose another provider, or pass a store object of yours as Memory(index=store)"
                    f" (providers: {', '.join(list_providers(kind))})"
                )
            step = "; pass a store object of LangChain or LlamaIndex as Memory(index=store)"
            step = step if kind == "vector_store" else "; pass one of them"
            raise ConfigError(_describe_unknown_provider(kind, name) + step)
        return
    missing = [] if _FRAMEWORK_ENTRY in _plugin_providers(kind) else [_FRAMEWORK_PACKAGE]
    missing += [package for package in packages.split() if find_spec(module_of(package)) is None]
    if missing:
        raise MissingExtraError(
            f"{kind}: the provider {name!r} needs {' and '.join(missing)}, which", packages=" ".join(missing)
        )


def check_keys(kind: ComponentKind, provider: str, config: Mapping[str, Any], wiring: Iterable[str]) -> None:
    """Check a provider with its keys before it is built; a framework's provider by the function of its adapter.

    Args:
        wiring: Names of the arguments of `build_component` that are not keys.

    Raises:
        ConfigError: the provider is unknown, or a key is unknown, missing or has the wrong type.
        MissingExtraError: the provider needs packages that are not installed.
    """
    check_provider(kind, provider)
    if provider in PROVIDERS[kind]:
        maker, keys = _resolve_provider(kind, provider), _provider_kwargs(kind, provider, reveal(config))
        _check_keys(f"{kind}.config", provider, maker, keys, dict.fromkeys(wiring))
    elif provider in FRAMEWORK_PROVIDERS.get(kind, {}):
        check = getattr(_plugin_providers(kind)[_FRAMEWORK_ENTRY].load(), "check_keys", None)
        if check is not None:
            check(provider, reveal(config))


def module_of(package: str) -> str:
    """Return the module that a package of a framework's providers installs."""
    return MODULES.get(package, package.replace("-", "_"))


def list_providers(kind: ComponentKind) -> list[str]:
    """Return the names of all providers of a kind, installed or not."""
    return sorted({*PROVIDERS[kind], *_plugin_providers(kind), *FRAMEWORK_PROVIDERS.get(kind, {})})


# --- descriptions --------------------------------------------------------------------------------------------------


def _parse_name(kind: ComponentKind, text: str) -> tuple[str, dict[str, Any]]:
    """Return the provider and the keys that ``provider``, ``provider:model`` or the name of a model describe.

    A folder, alone or in place of the model, is that of a local embedder or reranker.
    """
    name, _, model = text.partition(":")
    if kind in ("embedder", "reranker"):
        if _is_folder(text):
            return "local", {"path": text}
        if name in _FOLDER_PROVIDERS and _is_folder(model):
            return name, {"path": model}
    if name in PROVIDERS[kind] or name in list_providers(kind):
        return name, {"model": model} if model else {}
    if (provider := find_model_provider(kind, text)) is not None:
        return provider, {"model": text}
    step = "; write 'provider:model' for a model that is not known by its name"
    raise ConfigError(_describe_unknown_provider(kind, name) + step)


def _describe_unknown_provider(kind: ComponentKind, name: str) -> str:
    """Return a message with the nearest provider or packaged model."""
    models, providers = PACKAGED_MODELS.get(kind, ()), list_providers(kind)
    near = find_nearest(name, [*models, *providers])
    if near not in models:
        return f"{kind}: unknown provider {name!r}{suggest(name, providers, label='providers')}"
    return (
        f"{kind}: unknown provider {name!r}; did you mean the model {near!r}, as {kind}={near!r}?"
        f" (providers: {', '.join(providers)})"
    )


def _is_folder(text: str) -> bool:
    """Return True for an existing folder with a separator: a plain name is that of a model."""
    return ("/" in text or os.sep in text) and os.path.isdir(os.path.expanduser(text))


def _parse_mapping(kind: ComponentKind, spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    for key in spec:
        if key not in ("provider", "config"):
            name = f"{kind}.{key}"
            hint = suggest(str(key), ("provider", "config"))
            raise ConfigError(f"unknown key {name!r}{hint}; a model's keys belong in {kind}.config")
    provider, config = spec.get("provider"), spec.get("config")
    if not isinstance(provider, str):
        found = "none is given" if provider is None else f"not {describe_value(provider)}"
        raise ConfigError(f"{kind}.provider: a name is required, {found}; providers: {', '.join(list_providers(kind))}")
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(
            f"{kind}.config: a mapping of the provider's keys is required, not a value of type"
            f" {type(config).__name__}; pass, for example, {{'model': ...}}"
        )
    return provider, dict(config or {})


def _provider_kwargs(kind: ComponentKind, provider: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provider's keys; all of mem0's names for a server's address become `base_url`."""
    if kind not in ("llm", "embedder"):
        return dict(config)
    keys = {key: value for key, value in config.items() if key not in BASE_URL_KEYS}
    given = dict.fromkeys(config[key] for key in BASE_URL_KEYS if config.get(key))
    if len(given) > 1:
        shown = " and as ".join(repr(redact_url(str(url))) for url in given)
        raise ConfigError(f"{kind}.config ({provider}): base_url is given twice, as {shown}; pass one")
    url = next(iter(given), BASE_URLS.get(provider))
    if isinstance(url, str) and provider in BASE_URLS and not url.rstrip("/").endswith("/v1"):
        url = url.rstrip("/") + "/v1"  # mem0 names ollama's root; the protocol is at /v1
    if (variable := KEY_VARIABLES.get(provider)) is not None and not keys.get("api_key"):
        if not os.environ.get(variable):
            raise ConfigError(f"{kind}.config.api_key ({provider}) is missing: pass it or set {variable}")
        keys["api_key"] = os.environ[variable]
    return {**keys, "base_url": url} if url else keys


# --- keys of a provider --------------------------------------------------------------------------------------------

_COMMON_KEYS = {"vector_store.config": ("path",)}
"""Keys that are accepted besides the parameters of a provider's maker."""

_PLAIN_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "None": (type(None),),
}


def _check_keys(
    where: str, provider: str, maker: Callable[..., Any], keys: Mapping[str, Any], wiring: Mapping[str, Any]
) -> None:
    """Check names and plain types of a provider's keys against the signature of its maker.

    Raises:
        ConfigError: a key is unknown, missing or has the wrong type.
    """
    try:
        parameters = inspect.signature(maker).parameters
    except (TypeError, ValueError):  # a maker in C has no signature
        return
    named = {
        name: one
        for name, one in parameters.items()
        if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY) and name not in wiring
    }
    is_open = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    for key, value in keys.items():
        if key not in named and not is_open:
            mem0s = PGVECTOR_ONLY_KEYS if provider in POSTGRES_VECTOR_STORES else ()
            accepted = [*named, *_COMMON_KEYS.get(where, ()), *mem0s]
            raise ConfigError(
                f"{where} ({provider}): unknown key {key!r}{suggest(str(key), accepted)}{_advise(where, key)}"
            )
        if key in named and not _fits(value, named[key].annotation):
            given = f"{type(value).__name__}" if is_secret_name(key) else describe_value(value)
            wanted = str(named[key].annotation).replace(" | ", " or ")
            default = named[key].default
            step = f"pass {wanted}" if default is named[key].empty else f"leave it out for the default {default!r}"
            raise ConfigError(f"{where}.{key} ({provider}): expected {wanted}, not {given}; {step}")
    for name, one in named.items():
        if one.default is one.empty and name not in keys:
            raise ConfigError(
                f"{where} ({provider}): the key {name!r} is required and missing; add it (accepted: {', '.join(named)})"
            )


def _advise(where: str, key: str) -> str:
    """Return the next step for an unknown key of a provider."""
    if where == "graph_store.config" and key in ("threshold", "custom_prompt", "llm", "limit"):
        return f"; {key} is no key of the provider: pass graph_store={{{key!r}: ...}}"
    return "; rename it, or leave it out"


def _fits(value: object, annotation: object) -> bool:
    """Return False if a value contradicts an annotation of plain types; other annotations accept every value."""
    names = annotation.split(" | ") if isinstance(annotation, str) else []
    if not names or any(name not in _PLAIN_TYPES for name in names):
        return True
    if isinstance(value, bool):
        return "bool" in names
    return any(isinstance(value, _PLAIN_TYPES[name]) for name in names)


# --- frameworks and plugins ----------------------------------------------------------------------------------------


def _adapt(kind: ComponentKind, instance: Any, wiring: Mapping[str, Any]) -> Any:
    """Return `instance` converted by the adapter of its framework, or unchanged if it has none.

    The modules of its classes decide, not its methods: other frameworks have a `score` and a `complete` too.
    """
    for base in type(instance).__mro__:
        root = base.__module__.partition(".")[0]
        if root not in _NON_FRAMEWORK_MODULES and (adapter := _adapters().get(root)) is not None:
            return adapter.load()(kind, instance, **wiring)
    return instance


def _resolve_provider(kind: ComponentKind, name: str) -> Callable[..., Any]:
    """Return the callable that builds a provider's component."""
    check_provider(kind, name)
    maker: Callable[..., Any]
    if target := PROVIDERS[kind].get(name):
        module, _, attribute = target.partition(":")
        maker = getattr(import_module(module), attribute)
    elif name in FRAMEWORK_PROVIDERS.get(kind, {}):
        maker = partial(_plugin_providers(kind)[_FRAMEWORK_ENTRY].load(), provider=name)
    else:
        maker = _plugin_providers(kind)[name].load()
    return maker


def _plugin_providers(kind: ComponentKind) -> dict[str, Any]:
    """Return the entry points of third-party providers by name."""
    return _entry_points(f"mem0_core.{kind}")


@cache
def _adapters() -> dict[str, Any]:
    """Return the entry points of framework adapters by top-level module."""
    return _entry_points("mem0_core.adapters")


def _entry_points(group: str) -> dict[str, Any]:
    from importlib.metadata import entry_points  # takes 40 ms, needed for third-party components only

    return {entry.name: entry for entry in entry_points(group=group)}
