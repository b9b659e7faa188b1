"""experiments/page-commands with a program that only notes its words: blocks run as they stand, those without data do not, and
a command that fails ends it.

usage: page_commands_test.py SCRIPT
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

PAGE = """# A page

```sh
miniqat train --dataset synthetic \\
  --out a    # a comment
miniqat eval a
```

```sh
miniqat train --dataset DIGITS/part --out b
```

```sh
miniqat train --dataset series.ts --out c
```

```text
miniqat train --dataset synthetic --out not-a-command
```

```sh
miniqat eval alone
```
"""


def run(place, page, *data, status=0):
    program = place / "program"
    program.write_text(f'#!/bin/sh\necho "$*" >> {place}/words\n[ "$1" != eval ] || [ ! -e {place}/broken ]\n')
    program.chmod(0o755)
    (place / "words").write_text("")
    (place / "page.md").write_text(page)
    done = subprocess.run([sys.argv[1], "--program", program, "--folder", place / "folder", place / "page.md", *data],
                          capture_output=True, text=True)
    assert done.returncode == status, done
    return (place / "words").read_text().splitlines(), done


SPEAKS = """
```sh
experiments/spoken_words.py WORDS
miniqat train --dataset WORDS --out d
```
"""


with tempfile.TemporaryDirectory() as name:
    place = pathlib.Path(name)
    words, done = run(place, PAGE)
    assert words == ["train --dataset synthetic --out a", "eval a"], words
    assert "left out, without DIGITS/part: miniqat train" in done.stdout and "without series.ts" in done.stdout, done.stdout
    (place / "digits/part").mkdir(parents=True)
    (place / "series.ts").write_text("")
    words, done = run(place, PAGE, f"DIGITS={place / 'digits'}", str(place / "series.ts"))
    assert [line.split()[-1] for line in words] == ["a", "a", "b", "c"] and "left out" not in done.stdout, words
    (place / "broken").write_text("")
    words, done = run(place, PAGE, status=1)
    assert len(words) == 2 and "status 1 of" in done.stderr, (words, done.stderr)
    run(place, "# A page without commands\n", status=1)
    if shutil.which("espeak-ng") is None:
        words, done = run(place, SPEAKS, status=1)
        assert words == [] and "left out, without espeak-ng" in done.stdout, done
