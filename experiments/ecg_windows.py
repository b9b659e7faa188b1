#!/usr/bin/env python3
"""Cuts an electrocardiogram with a label a sample (a line "data,label", 0: normal) into windows, as a pair of .ts files for a
detector of anomalies: OUT/ECG_TRAIN.ts has the normal windows of the first two thirds, OUT/ECG_TEST.ts all of the rest, where
those whose middle is labelled are of class 1.

usage: experiments/ecg_windows.py mitdb.csv[.gz] OUT"""

import gzip
import pathlib
import sys

SAMPLES, STRIDE = 256, 4
HEADER = '@problemName ECG\n@univariate true\n@classLabel true 0 1\n@data\n'


def windows(rows, first, end):
    """(samples, class) of each window that lies in [first, end)."""
    for start in range(first, end - SAMPLES + 1, STRIDE):
        yield [data for data, _ in rows[start:start + SAMPLES]], int(rows[start + SAMPLES // 2][1] != '0')


def write(path, chosen):
    lines = [f'{",".join(samples)}:{label}\n' for samples, label in chosen]
    path.write_text(HEADER + ''.join(lines))
    return len(lines)


def cut(source, out):
    """Returns how many windows there are to train and to test, and how many of the latter are of class 1."""
    text = (gzip.open if source.suffix == '.gz' else open)(source, 'rt').read()
    rows = [line.split(',') for line in text.split()[1:]]
    out.mkdir(parents=True, exist_ok=True)
    third = len(rows) * 2 // 3
    test = list(windows(rows, third, len(rows)))
    trained = write(out / 'ECG_TRAIN.ts', [one for one in windows(rows, 0, third) if one[1] == 0])
    return trained, write(out / 'ECG_TEST.ts', test), sum(label for _, label in test)


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__.split('\n\n')[1])
    print('{} windows to train, {} to test, {} of them abnormal'.format(*cut(*map(pathlib.Path, sys.argv[1:]))))
