"""Programs that take turns in being timed: what bench-peers, bench-kernels, bench-integer and bench-ddp share."""

import contextlib
import os
import signal
import statistics
import subprocess
import time

# Threads of both sides spin for a moment after their work.
PAUSE_SECONDS = 0.02
TRIALS = 3


class Failure(Exception):
    pass


class Side:
    """A process that waits for its turns: one of ours, or a worker of another system. It prints "ready ITEMS", then for each
    line "go N" the seconds that N repetitions took. A worker answers "check" with what is wrong so far, or "ok"."""

    def __init__(self, name, command, environment=None):
        self.name, self.environment, self.command = name, environment or {}, [str(word) for word in command]
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                            env={**os.environ, **self.environment})
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
            raise Failure(f"PyTorch, {self.name}: {answer or 'ended early' + self.end()}")

    def ask(self, line):
        """Its answer, a line; "" if it has ended."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            return ""
        return self.process.stdout.readline()

    def end(self):
        """Ends it; in words the signal that had ended it, such as an illegal instruction, if one had."""
        self.close()
        return f": {signal.strsignal(-self.process.returncode)}" if self.process.returncode < 0 else ""

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
    tries = [[] for _ in sides]
    for _ in range(TRIALS):
        for side, seconds in zip(sides, tries):
            time.sleep(PAUSE_SECONDS)
            seconds.append(side.seconds())
    medians = [statistics.median(seconds) for seconds in tries]
    chosen = sides[medians.index(min(medians))]
    for side in sides:
        if side is not chosen:
            side.close()
    return chosen
