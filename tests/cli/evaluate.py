"""What Python measures of integer models on a test part: evaluate.py "DATASET --flag value ..." FILE.miniqat..."""

import json
import sys

import miniqat


def value_of(word):
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


name, *words = sys.argv[1].split()
flags = {flag.removeprefix("--").replace("-", "_"): value_of(word) for flag, word in zip(words[::2], words[1::2])}
_, test = miniqat.load(name, **flags)
print(json.dumps([miniqat.evaluate_integers(miniqat.IntegerModel.read(file), test).measures for file in sys.argv[2:]]))
