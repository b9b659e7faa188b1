"""scripts/get-data against a server of this machine that breaks off, sends wrong bytes, or has nothing.

usage: get_data_test.py SCRIPT; exit status 77 without curl. The files are small: the copy of the script that is tested
has their sizes and sums in place of MNIST's, and is the same otherwise.
"""

import gzip
import hashlib
import http.server
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

NAMES = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
CONTENT = {name: (name * 3000).encode() for name in NAMES}
asked = []


class Mirrors(http.server.BaseHTTPRequestHandler):
    """/good has all, /cut breaks off, /wrong and /larger send other contents, /plain forgets to compress."""

    def do_GET(self):
        asked.append(self.path)
        _, mirror, file = self.path.split("/")
        content = CONTENT[file.removesuffix(".gz")]
        body = {
            "good": gzip.compress(content),
            "cut": gzip.compress(content),
            "wrong": gzip.compress(content[:-1] + b"?"),
            "larger": gzip.compress(content + b"x" * 10**7),
            "plain": content,
            "page": b"<html>Welcome to our hotel's network</html>",
        }.get(mirror)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if mirror == "cut" else body)
        self.close_connection = True

    def log_message(self, *_):
        pass


class Case:
    def __init__(self, script, port):
        self.script, self.port = script, port

    def run(self, folder, *mirrors):
        urls = " ".join(f"http://127.0.0.1:{self.port}/{mirror}" for mirror in mirrors)
        environment = {**os.environ, "MINIQAT_MIRRORS": urls, "no_proxy": "*"}
        return subprocess.run([self.script, "mnist", folder], env=environment, capture_output=True, text=True)


def require(holds, what):
    if not holds:
        sys.exit(f"get_data_test: {what}")


def require_complete(folder):
    require(sorted(os.listdir(folder)) == sorted(f"{name}.gz" for name in NAMES), f"holds {os.listdir(folder)}")
    for name in NAMES:
        require(gzip.open(f"{folder}/{name}.gz").read() == CONTENT[name], f"{name} has other bytes")


def test(case, place):
    for bad in ("cut", "wrong", "larger", "plain", "page", "nothing"):
        folder = f"{place}/{bad}"
        outcome = case.run(folder, bad)
        require(outcome.returncode == 1, f"{bad}: status {outcome.returncode}")
        require(os.listdir(folder) == [], f"{bad}: leaves {os.listdir(folder)}")
        require(f"/{bad}/train-images" in outcome.stderr and "no mirror has" in outcome.stderr, outcome.stderr)
        require("Traceback" not in outcome.stderr, outcome.stderr)
        # A mirror that fails is followed by the next.
        if bad not in ("cut", "wrong", "nothing"):
            continue
        outcome = case.run(folder, bad, "good")
        require(outcome.returncode == 0, f"{bad}, good: {outcome.stderr}")
        require_complete(folder)

    # What is there and right stays; what is damaged is replaced.
    damaged = f"{folder}/{NAMES[1]}.gz"
    with open(damaged, "r+b") as file:
        file.truncate(50)
    asked.clear()
    outcome = case.run(folder, "good")
    require(outcome.returncode == 0 and asked == [f"/good/{NAMES[1]}.gz"], f"asked for {asked}")
    require_complete(folder)

    # A file that was right is not replaced by one that is wrong.
    outcome = case.run(folder, "wrong")
    require(outcome.returncode == 0, outcome.stderr)
    require_complete(folder)

    for line in ([], ["mnist"], ["other", place], ["mnist", ""]):
        status = subprocess.run([case.script, *line], capture_output=True).returncode
        require(status == 2, f"{line}: status {status}")
    for word in ("--help", "-h"):
        outcome = subprocess.run([case.script, word], capture_output=True, text=True)
        require(outcome.returncode == 0 and outcome.stdout == "usage: scripts/get-data mnist DIR\n", outcome)


def with_small_files(script, place):
    rows = [f'"{name} {len(CONTENT[name])} {hashlib.sha256(CONTENT[name]).hexdigest()}"' for name in NAMES]
    with open(script) as file:
        text, changed = re.subn(r"(?m)^files=\(\n.*?^\)$", "files=(\n" + "\n".join(rows) + "\n)", file.read(), flags=re.S)
    require(changed == 1, "the script has no list of files")
    with open(f"{place}/get-data", "w") as file:
        file.write(text)
    os.chmod(f"{place}/get-data", 0o755)
    return f"{place}/get-data"


def main():
    if shutil.which("curl") is None:
        print("Skipping scripts/get-data: there is no curl")
        sys.exit(77)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirrors)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as place:
        test(Case(with_small_files(sys.argv[1], place), server.server_address[1]), place)


main()
