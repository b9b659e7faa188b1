"""tests/fuzz/readers/corpus.py: what it packs it unpacks to the same bytes. The argument is the script."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(sys.argv.pop(1)).resolve()
CORPUS = SCRIPT.parent.parent / "corpus"


class CorpusTest(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)
        # A copy, as the script keeps the lists beside itself.
        for folder in ("corpus", "readers"):
            (self.place / folder).mkdir()
        shutil.copy(SCRIPT, self.place / "readers")

    def corpus(self, way, reader, folder):
        subprocess.run(["/usr/bin/python3", self.place / "readers/corpus.py", way, reader, self.place / folder], check=True)

    def files_in(self, folder):
        return {path.name: path.read_bytes() for path in (self.place / folder).iterdir()}

    def test_all_bytes_come_back(self):
        every = bytes(range(256))
        files = {"every": every, "reverse": every[::-1], "empty": b"", "blank": b" ", "blanks": b" a  \n b ", "tail": b"x \n",
                 "ends": b"\r\n\n\v\f\x1c\x85\xe2\x80\xa8\0", "escapes": b"\\n\\x41\\\\", "text": "größe,ß\t1\n".encode(),
                 "utf16": "a\tb".encode("utf-16")}
        (self.place / "in").mkdir()
        for name, data in files.items():
            (self.place / "in" / name).write_bytes(data)
        self.corpus("pack", "csv", "in")
        text = (self.place / "corpus/csv.txt").read_bytes()
        self.assertEqual(len(text.split(b"\n")), len(files) + 1, "a line for each input")
        self.assertTrue(set(text) <= set(range(32, 127)) | set(b"\t\n"), "visible characters of ASCII")
        self.assertNotIn(b" \n", text, "editors take blanks at an end away")
        self.corpus("unpack", "csv", "out")
        self.assertEqual(self.files_in("out"), files)

    def test_names_of_libfuzzer_are_cut(self):
        (self.place / "in").mkdir()
        for name in ("0123456789abcdef" * 2 + "01234567", "crash"):
            (self.place / "in" / name).write_bytes(b"\xff")
        self.corpus("pack", "csv", "in")
        self.assertEqual((self.place / "corpus/csv.txt").read_text(), "0123456789ab\t\\xff\ncrash\t\\xff\n")

    def test_the_corpora_come_back(self):
        for file in sorted(CORPUS.glob("*.txt")):
            with self.subTest(file.name):
                shutil.copy(file, self.place / "corpus")
                self.corpus("unpack", file.stem, file.stem)
                self.corpus("pack", file.stem, file.stem)
                lines = file.read_text().splitlines()
                self.assertEqual((self.place / "corpus" / file.name).read_text().splitlines(), sorted(lines))


if __name__ == "__main__":
    unittest.main()
