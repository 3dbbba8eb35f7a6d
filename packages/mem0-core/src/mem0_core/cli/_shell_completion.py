"""Completion scripts for shells, generated from the argument parser."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")

_BASH = """\
# Completion of mem0-core. Load it with: source <(mem0-core completion {shell})
{head}_mem0_core() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= candidates part
  for part in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $part in {commands}) command=$part; break ;; esac
  done
  case $command in
{cases}
    *) candidates="{words} {options}" ;;
  esac
  case "$command $before" in
{values}
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$word"))
  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -F _mem0_core mem0-core
"""


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return a script that completes the commands and options of `parser` in a shell (one of `SHELLS`)."""
    commands = _list_commands(parser)
    if shell == "fish":
        return _build_fish_script(parser, commands)
    cases = "\n".join(
        f'    {name}) candidates="{" ".join(_list_words(command))}" ;;' for name, command in commands.items()
    )
    return _BASH.format(
        shell=shell,
        head="autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else "",
        commands="|".join(commands),
        cases=cases,
        values="\n".join(_build_value_cases({"": parser, **commands})),
        words=" ".join(commands),
        options=" ".join(_list_words(parser)),
    )


def _build_value_cases(parsers: dict[str, argparse.ArgumentParser]) -> list[str]:
    """Return the cases of bash for the word after an option that takes a value: its choices, else a file."""
    commands: dict[str, dict[str, list[str]]] = {}  # by option and by the words that may follow it
    for name, parser in parsers.items():
        for action in parser._actions:
            for option in action.option_strings if action.nargs != 0 else ():
                words = " ".join(map(str, action.choices or ()))
                commands.setdefault(option, {}).setdefault(words, []).append(name)
    cases: dict[str, list[str]] = {}
    for option, by_words in commands.items():
        for words, names in by_words.items():
            patterns = [f'"{name} {option}"' for name in names] if len(by_words) > 1 else [f'*" {option}"']
            cases.setdefault(words, []).extend(patterns)
    return [f'    {"|".join(patterns)}) candidates="{words}" ;;' for words, patterns in cases.items()]


def _build_fish_script(parser: argparse.ArgumentParser, commands: dict[str, argparse.ArgumentParser]) -> str:
    lines = ["# Completion of mem0-core. Load it with: mem0-core completion fish | source"]
    for name, command in commands.items():
        about = (command.description or "").replace("'", "\\'")
        lines.append(f"complete -c mem0-core -n __fish_use_subcommand -a {name} -d '{about}'")
        for action in command._actions:
            for option in (option for option in action.option_strings if option.startswith("--")):
                about = (action.help or "").replace("'", "\\'")
                when = f"'__fish_seen_subcommand_from {name}'"
                value = "" if action.nargs == 0 else f" -x -a '{' '.join(action.choices)}'" if action.choices else " -r"
                lines.append(f"complete -c mem0-core -n {when} -l {option[2:]}{value} -d '{about}'")
    return "\n".join(lines) + "\n"


def _list_commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return {name: command for action in found for name, command in action.choices.items()}


def _list_words(parser: argparse.ArgumentParser) -> list[str]:
    """Return the long options of a parser, and the choices of its positional arguments."""
    words = [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
    for action in parser._actions:
        if not action.option_strings and action.choices and not isinstance(action, argparse._SubParsersAction):
            words += [str(choice) for choice in action.choices]
    return words
