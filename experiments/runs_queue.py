"""Runs of miniqat that a script may be stopped in: what is complete is not repeated, what was begun is resumed. A ledger
keeps the results of complete runs, so that the runs of one table may be made on several days and machines."""

import datetime
import json
import math
import pathlib
import platform
import subprocess
import sys
import threading


class Ledger:
    """A file with one JSON object a line: the results of a complete run, its command, date, machine and commit. Without a
    path nothing is kept."""

    KEPT = ('test_accuracy', 'validation_accuracy', 'accuracy', 'threads', 'widths')

    def __init__(self, path=None):
        self.path = pathlib.Path(path) if path else None
        self.lock = threading.Lock()
        self.records = {}
        if self.path and self.path.exists():
            for line in self.path.read_text().splitlines():
                record = json.loads(line)
                self.records[record['run']] = record

    def get(self, name):
        return self.records.get(name)

    def differences(self, name, command):
        """Flags with their values: those that made the run of the ledger and are not of `command`, and the reverse. In
        whatever order."""
        record = self.records.get(name)
        if record is None:
            return [], []
        then, now = (text.split(' --') for text in (record['command'], self._portable(command)))
        return [f for f in then if f not in now], [f for f in now if f not in then]

    def add(self, name, command, results, finished):
        """`finished`: seconds since 1970."""
        with self.lock:
            if not self.path or name in self.records:
                return
            record = {'run': name, 'command': self._portable(command), 'date': str(datetime.date.fromtimestamp(finished)),
                      'machine': machine(),
                      'commit': results.get('reestimation', results).get('machine', {}).get('commit') or commit(),
                      **{k: results[k] for k in self.KEPT if k in results}}
            self.records[name] = record
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open('a') as file:
                file.write(json.dumps(record) + '\n')

    @staticmethod
    def _portable(command):
        """Without folders of this machine: data are where they are, a run is its name."""
        kept = [str(part) for part in command]
        if '--data-dir' in kept:
            at = kept.index('--data-dir')
            del kept[at:at + 2]
        return ' '.join(pathlib.PurePath(part).name if '/' in part else part for part in kept)


def machine():
    try:
        for line in pathlib.Path('/proc/cpuinfo').read_text().splitlines():
            if line.startswith('model name'):
                return line.split(':', 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def commit():
    """Of the sources beside this script, for programs that do not put their own into the summary of a run."""
    known = subprocess.run(['git', 'rev-parse', '--short', 'HEAD'], cwd=pathlib.Path(__file__).parent,
                           capture_output=True, text=True)
    return known.stdout.strip() or None


def add_ledger_flag(parser):
    parser.add_argument('--ledger', help='a file that keeps the results of complete runs; runs whose results it has are not '
                                         'made again')


class Runs:
    def __init__(self, program, out, ledger=None):
        self.program, self.out, self.ledger = program, pathlib.Path(out), Ledger(ledger)

    def own_summary(self, name):
        """Of a complete run that is here; None of any other."""
        try:
            summary = json.loads((self.out / name / 'summary.json').read_text())
            return summary if summary['complete'] else None
        except (OSError, ValueError, KeyError):
            return None

    def summary(self, name):
        """Of a complete run, here or in the ledger; None of any other."""
        return self.own_summary(name) or self.ledger.get(name)

    def accuracy(self, name, of='test_accuracy'):
        """In %; None of a run that is not complete."""
        summary = self.summary(name)
        return None if summary is None else 100 * summary[of]

    def run(self, name, command):
        """Leaves a complete run here. `command`: miniqat's, with all flags but --out."""
        if self.own_summary(name) is None:
            self._make(name, command)
        summary = self.own_summary(name)
        if summary is not None:
            finished = (self.out / name / 'summary.json').stat().st_mtime
            self.ledger.add(name, command, summary, finished)

    def run_all(self, steps):
        """Names and commands, each of which may start from the ones before: what has failed ends them."""
        for name, command in steps:
            self.run(name, command)
            if self.own_summary(name) is None:
                return

    def _make(self, name, command):
        folder = self.out / name
        if command[0] == 'train' and (folder / 'checkpoint.safetensors').exists():
            command = ['train', '--resume', *self._machine_flags(command)]
        else:
            command = [*command, '--overwrite']
        done = self._finished([*command, '--out', folder])
        # A network that diverges has failed, and that is a result.
        if done.returncode not in (0, 1):
            sys.exit(f'{name}: {done.stderr.strip()}')
        print(f'{name} {"done" if done.returncode == 0 else "failed: " + done.stderr.strip()}', file=sys.stderr)

    def tell_of_others(self, steps, defaults=()):
        """The ledger knows a run by its name. Warns where one of `steps`, names and commands, would have other flags today;
        `defaults` were the program's before they were flags here."""
        for name, command in dict(steps).items():
            then, now = self.ledger.differences(name, command)
            now = [flag for flag in now if flag not in defaults]
            if then or now:
                flags = ' and '.join([f'with --{flag}' for flag in then] + [f'without --{flag}' for flag in now])
                print(f'{name}: the ledger has results of a run {flags}', file=sys.stderr)

    def call(self, what, command):
        """miniqat's command, which must succeed; its output is dropped."""
        done = self._finished(command)
        if done.returncode != 0:
            sys.exit(f'{what}: {done.stderr.strip()}')

    def _finished(self, command):
        try:
            return subprocess.run([self.program, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            sys.exit(f'{self.program}: {error.strerror}; --program names miniqat, which ./demo or ./test builds')

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
