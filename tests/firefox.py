#!/usr/bin/python3
"""Opens a page in headless Firefox, for tests/browser.cpp: `firefox.py PAGE WIDTH HEIGHT`.

Waits until the element "found" has a text, where the page has one. Prints the document as HTML, and on stderr the lines of
the console that are about the page, each behind ":CONSOLE". Speaks Firefox's own protocol, Marionette: no package is needed
but `firefox-esr`.
"""

import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

LONGEST_WAIT = 90
PREFERENCES = {
    "marionette.port": 0,
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "toolkit.telemetry.enabled": False,
}


class Marionette:
    """Messages are "LENGTH:JSON"; a command is [0, number, name, parameters], its answer [1, number, error, result]."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LONGEST_WAIT)
        self.buffer = b""
        self.number = 0
        self.receive()

    def receive(self):
        while b":" not in self.buffer:
            self.read()
        length, self.buffer = self.buffer.split(b":", 1)
        while len(self.buffer) < int(length):
            self.read()
        text, self.buffer = self.buffer[: int(length)], self.buffer[int(length) :]
        return json.loads(text)

    def read(self):
        part = self.socket.recv(1 << 16)
        if not part:
            sys.exit("firefox.py: Firefox has gone")
        self.buffer += part

    def ask(self, name, **parameters):
        self.number += 1
        text = json.dumps([0, self.number, name, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        _, _, error, result = self.receive()
        if error:
            sys.exit(f"firefox.py: {name}: {error['message']}")
        return result

    def evaluate(self, script):
        return self.ask("WebDriver:ExecuteScript", script=script, args=[])["value"]


def port_of(profile, firefox):
    """Firefox writes the port that it chose into its profile."""
    file = pathlib.Path(profile) / "MarionetteActivePort"
    for _ in range(10 * LONGEST_WAIT):
        if file.exists() and file.read_text():
            return int(file.read_text())
        if firefox.poll() is not None:
            sys.exit(f"firefox.py: Firefox ended with status {firefox.returncode}")
        time.sleep(0.1)
    sys.exit("firefox.py: Firefox does not answer")


def look(marionette, page, width, height):
    marionette.ask("WebDriver:NewSession", capabilities={"alwaysMatch": {"pageLoadStrategy": "normal"}})
    marionette.ask("WebDriver:SetWindowRect", width=width, height=height)
    address = pathlib.Path(page).resolve().as_uri()
    marionette.ask("WebDriver:Navigate", url=address)
    end = time.monotonic() + LONGEST_WAIT
    while marionette.evaluate("const box = document.getElementById('found'); return box !== null && box.textContent === ''"):
        if time.monotonic() > end:
            break
        time.sleep(0.1)
    # What is reported a moment later belongs to the page, too.
    time.sleep(0.5)
    print(marionette.evaluate("return document.documentElement.outerHTML"))
    marionette.ask("Marionette:SetContext", value="chrome")
    lines = marionette.evaluate(
        """const said = Cc["@mozilla.org/consoleAPI-storage;1"].getService(Ci.nsIConsoleAPIStorage).getEvents();
           return [...Services.console.getMessageArray().map((line) => String(line)),
                   ...said.map(({filename, arguments: words}) => `${words.join(" ")} (${filename})`)];""")
    for line in lines:
        if address in line:
            print(":CONSOLE", re.sub(r"\s*\n\s*", " ", line), file=sys.stderr)


def main():
    page, width, height = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        (pathlib.Path(profile) / "user.js").write_text("\n".join(lines))
        firefox = subprocess.Popen(
            ["firefox-esr", "--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile", profile],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            look(Marionette(port_of(profile, firefox)), page, width, height)
        finally:
            firefox.terminate()
            firefox.wait()


main()
