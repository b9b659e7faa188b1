"""Programs that take turns in being timed: what bench-peers, bench-kernels, bench-integer and bench-ddp share, and the workers
that they start, under any interpreter."""

import contextlib
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

# Threads of both sides spin for a moment after their work.
PAUSE_SECONDS = 0.02
TRIALS, TRIAL_SECONDS = 3, 0.2
WARM_UP_STEPS = 30

# What is trained: batch, side, channels, learning rate. The layers are miniqat's.
NETWORKS = {"lenet": (128, 28, 1, 0.005), "lenet5": (128, 28, 1, 0.005), "resnet20": (128, 32, 3, 0.02),
            "mobilenet_v1": (64, 32, 3, 0.02), "mobilenet_v2": (64, 32, 3, 0.02)}


class Failure(Exception):
    pass


class Side:
    """A process that waits for its turns: one of ours, or a worker of another system. It prints "ready ITEMS", then for each
    line "go N" the seconds that N repetitions took. A worker answers "check" with what is wrong so far, or "ok"."""

    def __init__(self, name, command, environment=None, quiet=False):
        """A quiet one shows no errors, but for their last line in the Failure."""
        self.name, self.environment, self.command = name, environment or {}, [str(word) for word in command]
        self.errors = tempfile.TemporaryFile("w+", errors="replace") if quiet else None
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            stderr=self.errors, env={**os.environ, **self.environment})
        except OSError as error:
            raise Failure(f"{error}; `cmake --build --preset release` builds our programs")
        answer = self.process.stdout.readline().split()
        if len(answer) != 2 or answer[0] != "ready":
            raise Failure(f"{' '.join(self.command)} did not get ready{self.end()}")
        self.items = int(answer[1])

    def seconds(self, repeats=1):
        answer = self.ask(f"go {repeats}")
        if not answer:
            raise Failure(f"{' '.join(self.command)} ended early{self.end()}")
        return float(answer)

    def require_sense(self):
        if (answer := self.ask("check").strip()) != "ok":
            raise Failure(f"{self.name}: {answer or 'ended early' + self.end()}")

    def ask(self, line):
        """Its answer, a line; "" if it has ended."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            return ""
        return self.process.stdout.readline()

    def end(self):
        """Ends it; in words the signal that had ended it, such as an illegal instruction, if one had, or its last error."""
        self.close()
        if self.process.returncode < 0:
            return f": {signal.strsignal(-self.process.returncode)}"
        if self.errors is None:
            return ""
        self.errors.seek(0)
        said = [line.strip() for line in self.errors if line.strip()]
        return f": {said[-1][:200]}" if said else ""

    def close(self):
        with contextlib.suppress(OSError):  # It may have ended before it read everything.
            self.process.stdin.close()
        self.process.wait()


def seconds_in_turns(sides, turns, turn_seconds):
    """For each side the seconds of one repetition in each turn. The sides take turns of about turn_seconds."""
    counts = [max(1, round(turn_seconds / min(side.seconds() for _ in range(2)))) for side in sides]
    seen = [[] for _ in sides]
    for _ in range(turns):
        for side, count, seconds in zip(sides, counts, seen):
            time.sleep(PAUSE_SECONDS)
            seconds.append(side.seconds(count) / count)
    return seen


def rates(sides, turns, turn_seconds):
    """Medians of the items a second of each side, in turns of about turn_seconds."""
    return [statistics.median(side.items / seconds for seconds in seen)
            for side, seen in zip(sides, seconds_in_turns(sides, turns, turn_seconds))]


def best(sides):
    """The fastest of the sides, tried in turns. Ends the others."""
    medians = [statistics.median(seconds) for seconds in seconds_in_turns(sides, TRIALS, TRIAL_SECONDS)]
    chosen = sides[medians.index(min(medians))]
    for side in sides:
        if side is not chosen:
            side.close()
    return chosen


def serve(items, repeat, fault=lambda: None):
    """A worker's end of a Side. `fault` returns what is wrong so far, or None."""
    repeat()
    print("ready", items, flush=True)
    for line in sys.stdin:
        if line.startswith("check"):
            print(fault() or "ok", flush=True)
            continue
        start = time.perf_counter()
        for _ in range(int(line.split()[1])):
            repeat()
        print(time.perf_counter() - start, flush=True)


def fault_of(losses):
    learns = all(map(math.isfinite, losses)) and min(losses[1:]) < losses[0]
    return None if learns else f"the loss does not fall: {losses[0]} to {losses[-1]}"


def serve_training(batch, step):
    """Trains with `step`, which returns the loss, until the loss must have fallen, and then in turns. (So the pictures of a
    class have something in common: noise alone is not learned in so few steps of every quantizer.)"""
    losses = [step() for _ in range(WARM_UP_STEPS)]
    # Dropout makes single losses noisy.
    if fault := fault_of([losses[0], statistics.median(losses[-3:])]):
        sys.exit(fault)
    serve(batch, lambda: losses.append(step()), lambda: fault_of(losses))
