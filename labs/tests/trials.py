"""Writes the trials of a lab (trials.h) as C++: its blank, its solution, and the solution with each mistake of the lab's table.

usage: trials.py ANSWER OUTPUT

ANSWER is the reader's file below labs/, such as 02-rounding-and-nudging/fake_quantize.cpp. The table is mistakes/02.txt.
"""

import itertools
import pathlib
import sys

LABS = pathlib.Path(__file__).resolve().parent.parent


def mistakes(table):
    """Name, hint and changes (old text and new text) of each entry. Entries are separated by empty lines, behind a comment."""
    for entry in table.read_text().strip("\n").split("\n\n")[1:]:
        head, *lines = entry.split("\n")
        name, _, hint = head.partition(": ")
        groups = [(sign, "\n".join(line[2:] for line in group)) for sign, group in itertools.groupby(lines, lambda line: line[:1])]
        signs = "".join(sign for sign, _ in groups)
        if not name.isidentifier() or not hint or not signs or signs != "-+" * (len(signs) // 2):
            sys.exit(f"{table}: no name, colon and hint, then lines that begin with -, then such with +:\n{entry}")
        texts = [text for _, text in groups]
        yield name, hint, list(zip(texts[::2], texts[1::2]))


def trials(answer_file):
    folder, function = answer_file.parent, answer_file.stem
    number = str(folder)[:2]
    table, solution = LABS / f"mistakes/{number}.txt", LABS / f"solutions/{number}.cpp"
    included, rows = [], []

    def add(title, hint, name):
        check = f"[](lab::Report& report) {{ lab{number}::check(report, lab{number}::{name}); }}"
        rows.append(f'    {{"{title}", "{hint}", {{"{number}", {check}, lab{number}::show, lab{number}::figure}}}},\n')

    for file, name in ((answer_file, "blank"), (f"solutions/{number}.cpp", "solution")):
        included.append(f'#define {function} {name}\n#include "labs/{file}"\n#undef {function}\n')
        add(file, "", name)
    for name, hint, changes in mistakes(table):
        text = solution.read_text()
        for old, new in changes:
            if old not in text:
                sys.exit(f"{table}, {name}: {solution} does not have\n{old}")
            text = text.replace(old, new)
        included.append(text.replace(f"namespace lab{number} {{", f"namespace lab{number}::mistake_{name} {{"))
        add(f"mistakes/{number}.txt, {name}", hint, f"mistake_{name}::{function}")

    return f"""#include <algorithm>
#include <cmath>

#include "labs/tests/trials.h"

#include "labs/{folder}/lab.h"

{"".join(included)}
namespace {{
const bool registered_{number} = lab::register_trials({{"{folder}", {{
{"".join(rows)}}}}});
}}  // namespace
"""


pathlib.Path(sys.argv[2]).write_text(trials(pathlib.Path(sys.argv[1])))
