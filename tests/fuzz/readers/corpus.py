#!/usr/bin/python3
r"""The corpora of the readers' fuzzers: files here, folders for libFuzzer.

usage: tests/fuzz/readers/corpus.py unpack READER FOLDER    writes each input of tests/fuzz/corpus/READER.txt as a file
       tests/fuzz/readers/corpus.py pack READER FOLDER      the reverse

A line is an input: its name, a tab, its bytes. A byte that is no visible character of ASCII, a backslash or a space
at the end is \xHH, a newline \n."""
import pathlib
import re
import sys


def text_of(data):
    return re.sub(rb'[^ -\[\]-~]| $', lambda byte: b'\\n' if byte[0] == b'\n' else b'\\x%02x' % byte[0][0], data).decode()


def bytes_of(text):
    return re.sub(rb'\\(n|x..)', lambda part: b'\n' if part[1] == b'n' else bytes.fromhex(part[1][1:].decode()), text.encode())


def main():
    way, reader, folder = sys.argv[1:]
    file = pathlib.Path(__file__).resolve().parent.parent / 'corpus' / f'{reader}.txt'
    folder = pathlib.Path(folder)
    if way == 'unpack':
        folder.mkdir(parents=True, exist_ok=True)
        for line in file.read_text().splitlines():
            name, text = line.split('\t')
            (folder / name).write_bytes(bytes_of(text))
    else:
        inputs = sorted((path.name[:12] if re.fullmatch('[0-9a-f]{40}', path.name) else path.name, path.read_bytes())
                        for path in folder.iterdir())
        file.write_text(''.join(f'{name}\t{text_of(data)}\n' for name, data in inputs))


if __name__ == '__main__':
    main()
