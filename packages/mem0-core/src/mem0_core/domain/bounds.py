"""Bounds on the work that one text causes, so that no text takes more than linear time.

A text beyond a bound is stored, embedded and searched as any other: only the parts that are read by rules are bounded.
"""

from __future__ import annotations

MAX_RULE_TEXT_CHARS = 100_000
"""Characters of a message that rules read for relations and names."""
MAX_STATEMENTS = 256
"""Statements at which rules stop reading a text; repetitions count."""
MAX_RELATIONS = 64
"""Relations, and as many endings, that rules take from one message: each costs the embeddings of three texts."""
MAX_NAMES = 64
"""Names of a text that search compares with those of a query."""
MAX_NAME_TEXT_CHARS = 4_000
"""Characters of a memory that are searched for those names."""
MAX_NEW_NAMES = 1_000
"""New names of one add that are compared with one another, each with each."""
MAX_SPELLINGS = 64
"""Occurrences of a word in a text at which the spelling of a name is looked up."""
MAX_TIME_TEXT_CHARS = 2_000
"""Characters of a clause or a query that are searched for times."""
MAX_CLAUSES_PER_RELATION = 64
"""Clauses of a memory that are searched for the days of one relation."""
