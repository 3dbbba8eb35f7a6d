"""Timestamps and dates in the stored form."""

from __future__ import annotations

from datetime import UTC, date, datetime

from mem0_core.errors import InputError

_YEARS = range(1800, 2200)
"""Numbers that are more likely years than seconds of the first hour of 1970."""

_TIME_FORMS = "pass ISO 8601 text such as '2026-01-31T09:30:00+00:00', a datetime, or Unix seconds"


def utc_now() -> str:
    """Return the present time in the stored form."""
    return datetime.now(UTC).isoformat()


def utc_today() -> str:
    """Return the present day, by UTC."""
    return datetime.now(UTC).date().isoformat()


def parse_timestamp(value: object, label: str = "timestamp") -> str:
    """Return a time as ISO 8601 in UTC, so that texts compare like times.

    Args:
        value: Unix seconds, ISO 8601 text, a datetime or a date; without an offset, it is in UTC.
        label: name of the argument, for errors.

    Raises:
        InputError: the value is none of these.
    """
    try:
        if isinstance(value, bool):
            raise ValueError("a boolean is not a time")
        if isinstance(value, int) and value in _YEARS:
            raise ValueError(f"Unix seconds are meant, and a year is given: write '{value}-01-01'")
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, UTC).isoformat()
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(f"{label} {value!r} is not a valid time: {error}; {_TIME_FORMS}") from error
    raise InputError(f"{label} must be a time, not {value!r}; {_TIME_FORMS}")


def parse_date(value: object, label: str) -> str:
    """Return a day as ``YYYY-MM-DD``, from any value that `parse_timestamp` accepts."""
    return parse_timestamp(value, label)[:10]
