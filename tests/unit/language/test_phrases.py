"""Statements in Spanish, which is chosen by its function words."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mem0_core.language._phrases import detect_language, read_phrases
from mem0_core.language.rule_extractor import extract_by_rules
from mem0_core.language.statements import read_statements

STATED = {
    "Vivo en Madrid con mi hermana Ana.": ["holds I lives_in Madrid", "holds I sister Ana"],
    "Me mudé de Sevilla a Valencia en mayo.": ["begins I lives_in Valencia", "ends I lives_in Sevilla"],
    "Ya no vivo en Lima.": ["ends I lives_in Lima"],
    "Mi hermano Luis trabaja en Iberia.": ["holds I brother Luis", "holds Luis works_at Iberia"],
    "Mi jefa se llama Carmen.": ["holds I boss Carmen"],
    "Me gusta el café y los perros.": ["holds I likes café", "holds I likes perros"],
    "No me gusta el pescado.": ["ends I likes pescado"],
    "Soy de Bogotá pero trabajo como enfermera en un hospital.": [
        "holds I is_from Bogotá",
        "holds I works_as enfermera",
    ],
    "Soy vegetariana desde hace un año.": ["holds I diet vegetariana"],
    "Tengo un perro llamado Rex.": ["holds I has_pet Rex"],
    "Me casé con Marta en la playa.": ["begins I married_to Marta"],
    "Antes vivía en Quito con mi madre.": ["past I lives_in Quito"],
    "¿Vivo en Madrid o no?": [],
    "Si vivo en Madrid, me alegro.": [],
}


@pytest.mark.parametrize("text", STATED)
def test_spanish_sentences_are_read(text: str) -> None:
    said = read_statements(text, said_on=date(2024, 6, 5))
    assert [f"{each.effect} {each.subject or 'I'} {each.family} {each.value}" for each in said] == STATED[text]


def test_relations_come_from_spanish_too() -> None:
    found = extract_by_rules("Vivo en Madrid y trabajo en Iberia.", speaker="eva")
    assert [(each.relationship, each.destination) for each in found.relations] == [
        ("lives_in", "Madrid"),
        ("works_at", "Iberia"),
    ]


@pytest.mark.parametrize(
    "text", ["I moved to Los Angeles.", "Me and El split up.", "", "La Paz", "Ana works at La Vida."]
)
def test_english_with_foreign_names_stays_english(text: str) -> None:
    assert detect_language(text) == "english"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    read_phrases(text, "spanish")
