"""Programs that take turns in being timed: what bench-peers and bench-integer share."""

import contextlib
import os
import signal
import subprocess

# Threads of both sides spin for a moment after their work.
PAUSE_SECONDS = 0.02


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
