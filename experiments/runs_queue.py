"""Runs of miniqat that a script may be stopped in at any moment: what is complete is not repeated, what was begun is
resumed. A ledger keeps the results of complete runs, so that the runs of one table may be made on several days and
machines."""

import contextlib
import ctypes
import datetime
import fcntl
import importlib.machinery
import importlib.util
import json
import math
import os
import pathlib
import platform
import shlex
import signal
import struct
import subprocess
import sys
import threading

# The variables of float networks that took hours, from which quantized runs may start on other machines.
NETWORKS = pathlib.Path(__file__).resolve().parent / 'float-networks'


class Ledger:
    """A file with one JSON object a line: the results of a complete run, its command, date, machine, commit and seconds.
    Without a path nothing is kept."""

    KEPT = ('test_accuracy', 'validation_accuracy', 'validation_loss', 'test_auc', 'test_partial_auc', 'test_r2', 'accuracy',
            'auc', 'partial_auc', 'r2', 'balanced_accuracy', 'recall', 'false_alarms', 'threads', 'widths', 'seconds', 'simulated',
            'integers', 'agree', 'runtime')
    # Of a command: places, which older records lack.
    PLACES = ('data-dir ', 'out ')

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
        then, now = ([flag for flag in text.split(' --') if not flag.startswith(self.PLACES)]
                     for text in (record['command'], portable(command)))
        return [f for f in then if f not in now], [f for f in now if f not in then]

    def add(self, name, command, results, finished):
        """`finished`: seconds since 1970."""
        with self.lock:
            if not self.path or name in self.records:
                return
            record = {'run': name, 'command': portable(command), 'date': str(datetime.date.fromtimestamp(finished)),
                      'machine': machine(),
                      'commit': results.get('reestimation', results).get('machine', {}).get('commit') or commit(),
                      **{k: results[k] for k in self.KEPT if k in results}}
            self.records[name] = record
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Others may have changed the file meanwhile, a merge for instance.
            so_far = self.path.read_text() if self.path.exists() else ''
            write_whole(self.path, so_far + json.dumps(record) + '\n')


def portable(command):
    """As one line, without folders of this machine: the data's is DIR, a run is its name, also where only its variables are
    kept."""
    kept = [str(part).removesuffix('.safetensors') for part in command]
    if '--data-dir' in kept:
        kept[kept.index('--data-dir') + 1] = 'DIR'
    return shlex.join(pathlib.PurePath(part).name if '/' in part else part for part in kept)


def write_whole(path, text):
    """The old file or the new one is there, whenever the process dies."""
    temporary = path.with_name(f'.{path.name}.tmp')
    with temporary.open('wb' if isinstance(text, bytes) else 'w') as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


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


def script(name):
    """A script beside this one, as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace('-', '_'), str(pathlib.Path(__file__).resolve().parent / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    # Its dataclasses look themselves up there.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module


def add_ledger_flag(parser):
    parser.add_argument('--ledger', help='a file that keeps the results of complete runs; runs whose results it has are not '
                                         'made again')


def add_keep_flag(parser):
    parser.add_argument('--keep', action='store_true',
                        help='keep the variables of float runs: quantized runs start from them where the float run is not in '
                             '--runs')
    add_networks_flag(parser)


def add_networks_flag(parser):
    parser.add_argument('--float-networks', type=pathlib.Path, default=NETWORKS, help='where they are kept (%(default)s)')


def stop_on_signals():
    """A signal stops the run that is being made, which writes its checkpoint, and then the script."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))


def die_with_parent():
    """A script that is killed leaves no run behind, which would hold the lock of its directory."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def seconds_of_steps(folder):
    """Of all processes that took part in a run: summary.json of old runs has the last one alone. None without steps."""
    try:
        lines = [json.loads(line) for line in (folder / 'metrics.jsonl').read_text().splitlines()]
        pictures = json.loads((folder / 'config.json').read_text())['batch_size']
    except OSError:
        return None
    seconds, done = 0, 0
    for line in lines:
        if line.get('images_per_second'):
            seconds += (line['step'] - done) * pictures / line['images_per_second']
            done = line['step']
    return round(seconds)


def write_variables(checkpoint, path):
    """The network's variables of a .safetensors file, without the optimizer's and the session's."""
    data = checkpoint.read_bytes()
    begin = 8 + struct.unpack('<Q', data[:8])[0]
    header, parts, end = {}, [], 0
    for name, entry in json.loads(data[8:begin]).items():
        if ':' in name or name == '__metadata__':
            continue
        first, last = entry['data_offsets']
        header[name] = entry | {'data_offsets': [end, end + last - first]}
        parts.append(data[begin + first:begin + last])
        end += last - first
    text = json.dumps(header, separators=(',', ':')).encode()
    text += b' ' * (-len(text) % 8)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, struct.pack('<Q', len(text)) + text + b''.join(parts))


class Runs:
    # There once a run can be resumed.
    BEGUN = {'train': 'checkpoint.safetensors', 'quantize': 'quantize.json'}

    def __init__(self, program, out, ledger=None):
        self.program, self.out, self.ledger, self.networks = program, pathlib.Path(out), Ledger(ledger), NETWORKS

    @contextlib.contextmanager
    def alone(self):
        """Makes the folder. Another process that makes runs there ends the script."""
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / 'queue.lock').open('w') as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                sys.exit(f'{self.out}: another queue makes these runs')
            yield

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
            folder = self.out / name
            seconds = seconds_of_steps(folder)
            self.ledger.add(name, [*command, '--out', name], summary if seconds is None else {**summary, 'seconds': seconds},
                            (folder / 'summary.json').stat().st_mtime)

    def start(self, name):
        """What `--init-checkpoint` is given: the float run, made here or to be made, or what is kept of it."""
        kept = self.networks / f'{name}.safetensors'
        return kept if self.own_summary(name) is None and kept.exists() else self.out / name

    def has_start(self, name):
        return self.start(name).suffix == '.safetensors'

    def keep_network(self, name):
        """Of a complete run that is here."""
        write_variables(self.out / name / 'checkpoint.safetensors', self.networks / f'{name}.safetensors')

    def run_all(self, steps):
        """Names and commands, each of which may start from the ones before: what has failed ends them."""
        for name, command in steps:
            self.run(name, command)
            if self.own_summary(name) is None:
                return

    def _make(self, name, command):
        folder = self.out / name
        begun = self.BEGUN.get(command[0])
        command = self._resumed(command) if begun and (folder / begun).exists() else [*command, '--overwrite']
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
        """The output of miniqat's command, which must succeed."""
        done = self._finished(command)
        if done.returncode != 0:
            sys.exit(f'{what}: {done.stderr.strip()}')
        return done.stdout

    def measure_integers(self, own, flags):
        """Of a complete run that is here; `flags`: of `eval`."""
        command = ['eval', '--run', self.out / own, *flags, '--integer', '--json']
        file = self._integers_file(own)
        if not file.exists():
            write_whole(file, self.call(own, command))
        self.ledger.add(own + '-integers', command, json.loads(file.read_text()), file.stat().st_mtime)

    def integer_figure(self, own, measure):
        """None of a run whose integers are not measured."""
        file, record = self._integers_file(own), self.ledger.get(own + '-integers')
        if file.exists():
            record = json.loads(file.read_text())
        return None if record is None else record.get(measure)

    def integer_accuracy(self, own):
        """In %; None of a run whose integers are not measured."""
        accuracy = self.integer_figure(own, 'accuracy')
        return None if accuracy is None else 100 * accuracy

    def _integers_file(self, own):
        return self.out / (own + '-integers.json')

    def _finished(self, command):
        try:
            child = subprocess.Popen([self.program, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                     preexec_fn=die_with_parent)
        except OSError as error:
            sys.exit(f'{self.program}: {error.strerror}; --program names miniqat, which ./demo or ./test builds')
        with child:
            try:
                output, errors = child.communicate()
            except BaseException:
                child.terminate()
                child.wait()
                raise
        return subprocess.CompletedProcess(child.args, child.returncode, output, errors)

    @staticmethod
    def _resumed(command):
        """That of a run that was begun. `train` refuses flags that the run did not begin with; folders may have moved."""
        if command[0] == 'train':
            at = command.index('--init-checkpoint') if '--init-checkpoint' in command else len(command)
            return [*command[:at], *command[at + 2:], '--resume']
        kept = [command[0], '--resume']
        for flag in ('--data-dir', '--threads'):
            if flag in command:
                kept += [flag, command[command.index(flag) + 1]]
        return kept


def mean_and_error(values):
    """The mean and its standard error."""
    mean = sum(values) / len(values)
    spread = sum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1)
    return mean, math.sqrt(spread / len(values))


def pooled_deviation(groups):
    """The standard deviation within groups of values; None without two values in a group."""
    squares, freedom = 0, 0
    for values in groups:
        squares += sum((v - sum(values) / len(values)) ** 2 for v in values)
        freedom += max(len(values) - 1, 0)
    return math.sqrt(squares / freedom) if freedom else None
