"""Corrections of misspelled words of a question."""

from __future__ import annotations

import pytest

from mem0_core.language._english_words import is_common
from mem0_core.language._question_words import _slip_cost, _vocabulary, _without_a_letter, correct_word


def misspell(word: str) -> set[str]:
    """Return the word with a letter too many, too few or wrong, and with two letters changed over."""
    middle = len(word) // 2
    return {
        word[:middle] + word[middle + 1 :],
        word[:middle] + "q" + word[middle:],
        word[:middle] + "q" + word[middle + 1 :],
        word[1] + word[0] + word[2:],
        word[-1] + word[1:-1] + word[0],
        word[:middle] + word[middle:][:2][::-1] + word[middle + 2 :],
    }


def correct_by_comparison(word: str) -> str:
    """Correct a word by a comparison with the whole vocabulary."""
    if len(word) < 3 or len(word) > 16 or word in _vocabulary():
        return word
    spellings = _without_a_letter(word)
    known = [near for near in _vocabulary() if len(near) >= 3 and near.isalpha()]
    near = [one for one in known if abs(len(one) - len(word)) < 2 and spellings & _without_a_letter(one)]
    cost, best = min(((_slip_cost(word, one), one) for one in near), default=(9, word))
    return best if cost <= (1 if len(word) < 6 else 2) else word


def test_words_are_corrected_as_by_a_comparison_with_the_whole_vocabulary() -> None:
    words = [word for word in sorted(_vocabulary())[::60] if len(word) >= 4 and word.isalpha()]
    slips = sorted({slip for word in words for slip in misspell(word) if not is_common(slip)})

    corrected = {slip: correct_word(slip) for slip in slips}

    assert corrected == {slip: correct_by_comparison(slip) for slip in slips}
    assert sum(slip != word for slip, word in corrected.items()) > len(words)


@pytest.mark.parametrize("word", ["latte", "wok", "earring", "waiter", "nice", "fried", "funds", "rabbi", "set", "net"])
def test_a_common_word_is_no_slip(word: str) -> None:
    assert correct_word(word) == word
