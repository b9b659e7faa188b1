"""experiments/spoken_words.py: a folder for each word, a file for each take, no two of them alike, and none made twice.

usage: spoken_words_test.py SCRIPT; exit status 77 without espeak-ng.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

if shutil.which("espeak-ng") is None:
    print("skipped: there is no espeak-ng, which scripts/install-deps --ci installs")
    sys.exit(77)

with tempfile.TemporaryDirectory() as place:
    out = pathlib.Path(place) / "words"
    command = [sys.argv[1], out, "--words", "yes,no", "--voices", "8"]
    said = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(2)]
    assert said[0].startswith("2 words of 8 voices") and said[0].endswith(" 96 files of them new\n"), said[0]
    assert said[1].endswith(" 0 files of them new\n"), said[1]
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*"))
    assert len(files) == 96 and {file.split("/")[0] for file in files} == {"yes", "no"}, files
    voices = {re.search(r"([\w+-]+)_\d+_\d+\.wav$", file)[1] for file in files}
    assert len(voices) == 8 and "en-us+f1" in voices, voices
    # A voice that espeak-ng does not have becomes another one.
    assert len({(out / file).read_bytes() for file in files}) == 96
