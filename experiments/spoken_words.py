#!/usr/bin/env python3
"""Speaks words by espeak-ng in 30 voices, at two speeds and three pitches each: OUT/WORD/VOICE_SPEED_PITCH.wav, a folder for
each class, as Speech Commands has them. A group is a voice, which --group-by holds out:

  miniqat train --dataset OUT --group-by '([\\w+-]+)_\\d+_\\d+\\.wav$' --model ds_cnn --float --epochs 10 --out spoken

Files that are there already stay. usage: experiments/spoken_words.py OUT [--words WORD,...] [--voices N]"""

import argparse
import pathlib
import shutil
import subprocess
import sys

WORDS = ('yes', 'no', 'up', 'down', 'left', 'right', 'on', 'off', 'stop', 'go')
# (en-gb by its other name: under this one all speakers are the same.)
ACCENTS = ('en-us', 'en', 'en-gb-scotland', 'en-us-nyc', 'en-gb-x-rp', 'en-029', 'en-gb-x-gbclan')
SPEAKERS = ('f1', 'm1', 'f2', 'm2', 'f3', 'm3', 'f4', 'm4', 'f5', 'm5', 'Alicia', 'm6', 'Andrea', 'm7', 'Annie', 'm8', 'aunty',
            'adam', 'belinda', 'Alex', 'Linda', 'benjamin', 'steph', 'boris', 'anika', 'david', 'grandma', 'edward', 'steph2', 'max')
# Each speaker has one accent.
VOICES = tuple(f'{ACCENTS[i % len(ACCENTS)]}+{speaker}' for i, speaker in enumerate(SPEAKERS))
SPEEDS, PITCHES = (140, 180), (30, 50, 70)


def speak(out, words, voices):
    """Returns how many files are new."""
    made = 0
    for word in words:
        (out / word).mkdir(parents=True, exist_ok=True)
        for voice, speed, pitch in ((v, s, p) for v in voices for s in SPEEDS for p in PITCHES):
            file = out / word / f'{voice}_{speed}_{pitch}.wav'
            if file.exists():
                continue
            begun = file.with_suffix('.begun')
            subprocess.run(['espeak-ng', '-v', voice, '-s', str(speed), '-p', str(pitch), '-w', begun, word], check=True)
            begun.rename(file)
            made += 1
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('out', type=pathlib.Path, help='the folder of the data set')
    parser.add_argument('--words', default=','.join(WORDS), help='the words, comma-separated: %(default)s')
    parser.add_argument('--voices', type=int, default=len(VOICES), help='so many of the voices (%(default)s)')
    arguments = parser.parse_args()
    if shutil.which('espeak-ng') is None:
        sys.exit('spoken_words.py: there is no espeak-ng; scripts/install-deps --nightly installs it')
    words = arguments.words.split(',')
    made = speak(arguments.out, words, VOICES[:arguments.voices])
    print(f'{len(words)} words of {len(VOICES[:arguments.voices])} voices in {arguments.out}, {made} files of them new')


if __name__ == '__main__':
    main()
