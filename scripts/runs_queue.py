"""Runs of miniqat that a script may be stopped in: what is complete is not repeated, what was begun is resumed."""

import json
import math
import pathlib
import subprocess
import sys


class Runs:
    def __init__(self, program, out):
        self.program, self.out = program, pathlib.Path(out)

    def summary(self, name):
        """Of a complete run; None of any other."""
        try:
            summary = json.loads((self.out / name / 'summary.json').read_text())
            return summary if summary['complete'] else None
        except (OSError, ValueError, KeyError):
            return None

    def accuracy(self, name, of='test_accuracy'):
        """In %; None of a run that is not complete."""
        summary = self.summary(name)
        return None if summary is None else 100 * summary[of]

    def run(self, name, command):
        """`command`: miniqat's, with all flags but --out."""
        if self.summary(name) is not None:
            return
        folder = self.out / name
        if command[0] == 'train' and (folder / 'checkpoint.safetensors').exists():
            command = ['train', '--resume', *self._machine_flags(command)]
        else:
            command = [*command, '--overwrite']
        done = subprocess.run([self.program, *command, '--out', folder], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True)
        # A network that diverges has failed, and that is a result.
        if done.returncode not in (0, 1):
            sys.exit(f'{name}: {done.stderr}')
        print(f'{name} {"done" if done.returncode == 0 else "failed: " + done.stderr.strip()}', file=sys.stderr)

    def call(self, what, command):
        """miniqat's command, which must succeed; its output is dropped."""
        done = subprocess.run([self.program, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f'{what}: {done.stderr}')

    @staticmethod
    def _machine_flags(command):
        """Where data are, and on how many threads: what a resumed run may be told anew."""
        kept = []
        for flag in ('--data-dir', '--threads'):
            if flag in command:
                kept += [flag, command[command.index(flag) + 1]]
        return kept


def mean_and_error(values):
    """The mean and its standard error."""
    mean = sum(values) / len(values)
    spread = sum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1)
    return mean, math.sqrt(spread / len(values))
