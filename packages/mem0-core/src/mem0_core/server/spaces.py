"""Spaces over HTTP: the memory that a team shares, for the user of a key."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mem0_core.memory import Memory
from mem0_core.server._endpoint import name_messages, name_subject
from mem0_core.server._problems import HttpError
from mem0_core.server._requests import merge_ids, pick, read_json, read_number
from mem0_core.server._routes import (
    ADD_TO_SPACE,
    ANSWER_FROM_SPACES,
    APPROVAL,
    MEMBER,
    SEARCH_SPACES,
    SPACE,
    SPACES_CONTEXT,
    UPDATE,
    VERDICT,
)
from mem0_core.server.keys import ApiKey
from mem0_core.views import AsyncPrincipal

Fields = dict[str, Any]


class SpaceHandlers:
    """Handlers of spaces, for `RestApi`. Each acts as the user of the key; a key without a user names one."""

    _memory: Memory

    async def list_spaces(self, request: Any, key: ApiKey) -> Any:
        """List the spaces of a user."""
        return await self._principal(key, request.query_params).spaces()

    async def create_space(self, request: Any, key: ApiKey) -> Any:
        """Create a space."""
        user, fields = self._read(request, key, SPACE)
        return await user.create_space(_take(fields, "space"), **fields)

    async def set_approval(self, request: Any, key: ApiKey) -> Any:
        """Let the writes of a space wait for approval, or not."""
        user, fields = self._read(request, key, APPROVAL)
        await user.set_approval(_space(request), _take(fields, "requires_approval"))
        return {"message": "Space updated successfully"}

    async def delete_space(self, request: Any, key: ApiKey) -> Any:
        """Erase a space."""
        return await self._principal(key, request.query_params).delete_space(_space(request))

    async def list_members(self, request: Any, key: ApiKey) -> Any:
        """List the members of a space."""
        return await self._principal(key, request.query_params).members(_space(request))

    async def set_member(self, request: Any, key: ApiKey) -> Any:
        """Add a member to a space, or change a role."""
        user, fields = self._read(request, key, MEMBER)
        await user.set_member(_space(request), request.path_params["member"], _take(fields, "role"))
        return {"message": "Member set successfully"}

    async def remove_member(self, request: Any, key: ApiKey) -> Any:
        """Remove a member from a space."""
        user = self._principal(key, request.query_params)
        await user.remove_member(_space(request), request.path_params["member"])
        return {"message": "Member removed successfully"}

    async def add_to_space(self, request: Any, key: ApiKey) -> Any:
        """Add messages to a space."""
        user, fields = self._read(request, key, ADD_TO_SPACE)
        return await user.add(name_messages(_take(fields, "messages"), request), space=_space(request), **fields)

    async def list_space(self, request: Any, key: ApiKey) -> Any:
        """List the memories of a space."""
        limit = read_number(dict(request.query_params), "limit")
        options: Fields = {} if limit is None else {"limit": limit}
        user = self._principal(key, request.query_params)
        return await user.get_all(spaces=[_space(request)], own=False, **options)

    async def update_in_space(self, request: Any, key: ApiKey) -> Any:
        """Replace the text of a memory of a space."""
        user, fields = self._read(request, key, UPDATE)
        return await user.update(await _find(user, request), _take(fields, "text"), **fields)

    async def delete_in_space(self, request: Any, key: ApiKey) -> Any:
        """Delete a memory of a space."""
        user = self._principal(key, request.query_params)
        return await user.delete(await _find(user, request))

    async def list_writes(self, request: Any, key: ApiKey) -> Any:
        """List the writes of a space that wait for approval."""
        return await self._principal(key, request.query_params).pending_writes(_space(request))

    async def settle_write(self, request: Any, key: ApiKey) -> Any:
        """Approve or reject a write of a space."""
        user, fields = self._read(request, key, VERDICT)
        is_approved, write_id = _take(fields, "approve"), request.path_params["write_id"]
        if not isinstance(is_approved, bool):
            raise HttpError(400, "approve must be true or false")
        if all(write["id"] != write_id for write in await user.pending_writes(_space(request))):
            raise HttpError(404, f"no write {write_id[:40]!r} of this space waits for approval")
        if is_approved:
            return await user.approve(write_id)
        await user.reject(write_id)
        return {"message": "Write rejected"}

    async def search_spaces(self, request: Any, key: ApiKey) -> Any:
        """Search a user's memories and those of their spaces."""
        user, fields = self._read(request, key, SEARCH_SPACES)
        return await user.search(fields.pop("query", ""), **fields)

    async def build_space_context(self, request: Any, key: ApiKey) -> Any:
        """Return the context of a turn, from a user's memories and those of their spaces."""
        user, fields = self._read(request, key, SPACES_CONTEXT)
        return await user.context(fields.pop("query", None), **fields)

    async def answer_from_spaces(self, request: Any, key: ApiKey) -> Any:
        """Answer a question from a user's memories and those of their spaces."""
        user, fields = self._read(request, key, ANSWER_FROM_SPACES)
        return await user.answer(fields.pop("question", ""), **fields)

    def _read(self, request: Any, key: ApiKey, accepted: Collection[str]) -> tuple[AsyncPrincipal, Fields]:
        """Return the user and the fields of a request with a body."""
        body = read_json(request)
        fields = pick(body, accepted)
        name_subject(request, {})  # what a space learns may be about anybody: every erasure drops the response
        return self._principal(key, {**request.query_params, **body}), fields

    def _principal(self, key: ApiKey, given: Mapping[str, Any]) -> AsyncPrincipal:
        """Return the user of a request.

        Raises:
            HttpError: 403, if the key is for another user, or for one agent or run; 400, without a user.
        """
        if key.agent_id or key.run_id:
            raise HttpError(403, "the API key is for one agent or run, and spaces need one for a user")
        user_id = merge_ids(key, given)["user_id"]
        if user_id is None:
            raise HttpError(400, "user_id is missing: name the user, or use a key that is bound to one")
        return AsyncPrincipal(self._memory, user_id)


def _space(request: Any) -> str:
    name: str = request.path_params["space"]
    return name


def _take(fields: Fields, name: str) -> Any:
    """Remove a required field, and return it."""
    if name not in fields:
        raise HttpError(400, f"{name} is missing")
    return fields.pop(name)


async def _find(user: AsyncPrincipal, request: Any) -> str:
    """Return the id of a memory, if the space of the request has it."""
    memory_id: str = request.path_params["memory_id"]
    found = await user.get(memory_id)
    if found is None or found.get("space") != _space(request):
        raise HttpError(404, f"the space has no memory {memory_id[:40]!r}")
    return memory_id
