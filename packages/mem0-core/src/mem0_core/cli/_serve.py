"""The command `serve`: the REST server in this process, or in one process per core on PostgreSQL."""

from __future__ import annotations

import argparse
import errno
import json
import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core.cli._errors import UsageError
from mem0_core.config import MemoryConfig
from mem0_core.memory import Memory
from mem0_core.server.keys import KEY_FILE, KeyRing

if TYPE_CHECKING:
    from mem0_core.server.webhooks import Webhook

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")

_WORKER_OPTIONS = "MEM0_CORE_WORKER_OPTIONS"  # environment variable of the processes that `serve` starts
_WEBHOOK_SECRET = "MEM0_WEBHOOK_SECRET"
_INHERITED_OPTIONS = ("config", "path", "store_url", "llm_backend", "allow_host", "no_keys")

_open_logs = ExitStack()  # of a worker, until it ends


def serve(memory: Memory, options: argparse.Namespace) -> None:
    """Serve until SIGTERM or SIGINT.

    Raises:
        UsageError: The address cannot be used, there is no key, callers from other machines would need none, or the
            store is of one process.
    """
    _check_address(options.host, options.port)
    from mem0_core.server.rest import build_rest_app, run_rest, run_workers
    from mem0_core.server.webhooks import deliver_changes

    hooks = _read_webhooks(options)
    keys = _open_keys(memory.config, options)
    if keys is not None and not keys.keys:
        raise UsageError("there is no key: `mem0-core keys --create NAME --user ID` prints one")
    if keys is None and options.host not in _LOOPBACK_HOSTS:
        raise UsageError(f"--no-keys serves every caller, so --host must be one of {', '.join(_LOOPBACK_HOSTS)}")
    workers = _count_workers(memory.config, options.workers)
    noun = f" with {workers} processes" if workers > 1 else ""
    print(f"mem0-core: serving http://{options.host}:{options.port}{noun}", file=sys.stderr, flush=True)
    if workers == 1:
        app = build_rest_app(memory, keys, hosts=[*_LOOPBACK_HOSTS, *options.allow_host])
        with deliver_changes(memory, hooks):
            run_rest(app, host=options.host, port=options.port)
        return
    if not hooks:
        memory.close()  # it has made the tables; each process opens its own
    inherited = {name: getattr(options, name) for name in _INHERITED_OPTIONS}
    os.environ[_WORKER_OPTIONS] = json.dumps({**inherited, "workers": workers}, default=str)
    with deliver_changes(memory, hooks):
        run_workers("mem0_core.cli._serve:create_worker_app", host=options.host, port=options.port, workers=workers)


def _check_address(host: str, port: int) -> None:
    """Raise UsageError if the server cannot listen at an address."""
    if not 0 < port < 2**16:
        raise UsageError(f"--port must lie in 1..65535, not {port}; pass, for example, --port 8765")
    try:
        families = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, _, _, address = families[0]
        with socket.socket(family, kind) as probe:
            if os.name == "posix":  # as uvicorn does, so that a port that was just released can be used
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except UnicodeError as error:  # as of the host "a..b"
        raise UsageError(f"--host {host!r} is no address: {error}; pass 127.0.0.1") from error
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            problem = f"--host {host!r} is no address of this machine: {error.strerror}; pass 127.0.0.1"
        else:
            problem = (
                f"--port {port} of {host} cannot be used: {error.strerror}; pass another --port, or end the program"
                " that uses it"
            )
        raise UsageError(problem) from error


def create_worker_app() -> Any:
    """Return the application of one of several processes, which owns its memory."""
    from mem0_core.cli import load_config
    from mem0_core.cli._logs import log_to_files
    from mem0_core.server.rest import build_rest_app

    options = argparse.Namespace(act=serve, **json.loads(os.environ[_WORKER_OPTIONS]))
    config = load_config(options)
    folder = None if options.config is None else Path(options.config).expanduser().parent
    _open_logs.enter_context(log_to_files(config, folder=folder))
    return build_rest_app(
        Memory(config),
        _open_keys(config, options),
        hosts=[*_LOOPBACK_HOSTS, *options.allow_host],
        workers=options.workers,
        owns_memory=True,
    )


def _read_webhooks(options: argparse.Namespace) -> list[Webhook]:
    """Return the webhooks of the options, with the secret of a file or of the environment.

    Raises:
        UsageError: There is a webhook without a secret.
    """
    from mem0_core.server.webhooks import Webhook

    secret = os.environ.get(_WEBHOOK_SECRET, "")
    if options.webhook_secret_file is not None:
        try:
            secret = Path(options.webhook_secret_file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"--webhook-secret-file cannot be read: {type(error).__name__}") from error
    if options.webhook and not secret:
        raise UsageError(f"--webhook needs a secret: --webhook-secret-file FILE, or ${_WEBHOOK_SECRET}")
    return [Webhook(url, secret) for url in options.webhook]


def _open_keys(config: MemoryConfig, options: argparse.Namespace) -> KeyRing | None:
    return None if options.no_keys else KeyRing(config.folder / KEY_FILE)


def _count_workers(config: MemoryConfig, given: int | None) -> int:
    """Return the number of processes: on PostgreSQL one per core by default, else one.

    Raises:
        UsageError: More than one is asked for, and the store is not PostgreSQL.
    """
    store = config.store
    is_shared = store is not None and store.provider == "postgres"
    if given is None:
        return _count_cores() if is_shared else 1
    if given < 1:
        raise UsageError(f"--workers must be positive, not {given}")
    if given > 1 and not is_shared:
        raise UsageError("--workers needs a store in PostgreSQL; name it with --store postgresql://...")
    return given


def _count_cores() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
