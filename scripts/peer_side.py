"""Programs that take turns in being timed: what bench-peers and bench-integer share."""

import os
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
            self.close()
            raise Failure(f"{' '.join(self.command)} did not get ready")
        self.items = int(answer[1])

    def seconds(self, repeats=1):
        self.process.stdin.write(f"go {repeats}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise Failure(f"{' '.join(self.command)} ended early")
        return float(answer)

    def require_sense(self):
        self.process.stdin.write("check\n")
        self.process.stdin.flush()
        if (answer := self.process.stdout.readline().strip()) != "ok":
            raise Failure(f"PyTorch, {self.name}: {answer or 'ended early'}")

    def close(self):
        self.process.stdin.close()
        self.process.wait()
