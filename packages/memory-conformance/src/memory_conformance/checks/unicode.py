"""Texts return exactly as they were written."""

from __future__ import annotations

from memory_conformance.registry import Kit, check, expect, expect_equal

TEXTS = (
    "Grüße aus Köln, Straße 5", "Я живу в Казани.", "私は京都に住んでいます。", "我住在上海。", "أسكن في القاهرة.",
    "אני גר בחיפה.", "मैं दिल्ली में रहता हूँ।", "ฉันอยู่กรุงเทพ", "Zażółć gęślą jaźń", "İstanbul'da yaşıyorum",
    "👩‍👩‍👧‍👦 family, 🇵🇹 flag, 👍🏽", "e\u0301 is not \u00e9", "right\u202eleft", "zero\u200bwidth", "nbsp\u00a0here",
    "line one\nline two\r\nline three\ttab",
    "It's \"quoted\" and \\escaped\\", "{json: [1, 2]}", "100% of {name} %s $x",
    "<script>alert(1)</script> &amp;", "'; DROP TABLE memories; --", "\U0001f9ff\U00020000 astral", "--- yaml: no",
)  # fmt: skip


@check("unicode", "add get")
def texts_return_unchanged(kit: Kit) -> None:
    """Scripts, emoji, combining marks, quotes and line ends return character by character."""
    owner = kit.new_owner()
    for text, memory_id in zip(TEXTS, kit.add_texts(owner, TEXTS), strict=True):
        expect_equal(kit.require(owner, memory_id).text, text, "text")


@check("unicode", "add list update")
def updates_return_unchanged(kit: Kit) -> None:
    """An update keeps the characters too."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["Plain."])
    for text in TEXTS[:6]:
        kit.system.update(owner, memory_id, text)
        expect_equal(kit.list_texts(owner), [text], "list")


@check("unicode", "add search")
def words_of_scripts_are_found(kit: Kit) -> None:
    """A word with letters of another script is found."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["Я живу в Казани", "Grüße aus Köln", "Zażółć gęślą jaźń"])
    for word, text in {"Казани": "Я живу в Казани", "Köln": "Grüße aus Köln", "jaźń": "Zażółć gęślą jaźń"}.items():
        expect_equal(kit.search_texts(owner, word)[:1], [text], f"first result for {word!a}")


@check("unicode", "add get")
def long_texts_are_refused_or_kept(kit: Kit) -> None:
    """A text of 100,000 characters is refused, or returns whole."""
    refuse_or_keep(kit, "A long story. " * 7143)


@check("unicode", "add get")
def odd_texts_are_refused_or_kept(kit: Kit) -> None:
    """NUL, a lone surrogate, spaces only and the empty text are refused, or return unchanged."""
    for text in ("before\0after", "lone \ud800 surrogate", "   ", "", "\ufeffbom", " spaces at the ends "):
        refuse_or_keep(kit, text)


def refuse_or_keep(kit: Kit, text: str) -> None:
    """Check that a text which is accepted returns unchanged, and that the store goes on."""
    owner = kit.new_owner()
    try:
        memory_id = kit.system.add(owner, text)
    except Exception:  # noqa: BLE001 a refusal is a good answer
        memory_id = None
    if memory_id is not None:
        record = kit.system.get(owner, memory_id)
        expect(record is not None, f"the accepted text {text[:30]!a} was not stored")
        assert record is not None
        expect(record.text == text, f"the accepted text {text[:30]!a} returned as {record.text[:30]!a}")
    after = kit.system.add(owner, "The next text.")
    expect_equal(kit.require(owner, after).text, "The next text.", f"the text after {text[:30]!a}")
