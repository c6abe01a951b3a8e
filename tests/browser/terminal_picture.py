"""A picture of a terminal: runs a program on a pty, keeps the screen that its bytes make, and lets the browser draw it.

Knows the few of xterm's sequences that `shoal` writes (cli/terminal.c, cli/top_live.c); another one is an error, so that no picture
shows what a terminal would not.
"""
import codecs
import fcntl
import html
import os
import pty
import re
import select
import signal
import struct
import termios
import time

SEQUENCE = re.compile("\x1b\\[([?]?)([0-9;]*)([A-Za-z])")
PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>terminal</title><style>
body {{ margin: 0; background: #0f1419; color: #e6edf3; }}
pre {{ display: inline-block; margin: 0; padding: 12px 16px; font: 14px/18px "DejaVu Sans Mono", monospace; }}
pre b {{ color: #79b8ff; font-weight: normal; }}
</style><pre><b>$ {command}</b>
{screen}</pre>"""


class Screen:
    """What a terminal of that size shows."""

    def __init__(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.lines, self.x, self.y, self.rest = [""] * rows, 0, 0, ""

    def feed(self, text):
        text, self.rest = self.rest + text, ""
        while text:
            found = SEQUENCE.match(text)
            if found:
                self.obey(*found.groups())
                text = text[found.end():]
            elif text[0] == "\x1b":
                if len(text) > 16:
                    raise ValueError(f"a sequence that is not known: {text[:16]!r}")
                self.rest = text  # its end is still to come
                return
            else:
                self.put(text[0])
                text = text[1:]

    def obey(self, private, numbers, letter):
        count = int(numbers or 1) if ";" not in numbers else 0
        if private and numbers in ("25", "1049") and letter in "hl":
            if numbers == "1049":
                self.lines, self.x, self.y = [""] * self.rows, 0, 0
        elif letter == "A":
            self.y = max(0, self.y - count)
        elif letter == "C":
            self.x = min(self.columns - 1, self.x + count)
        elif letter == "H" and not numbers:
            self.x = self.y = 0
        elif letter in "JK" and not numbers:
            self.lines[self.y] = self.lines[self.y][:self.x]
            if letter == "J":
                self.lines[self.y + 1:] = [""] * (self.rows - self.y - 1)
        else:
            raise ValueError(f"a sequence that is not known: {private}{numbers}{letter}")

    def put(self, letter):
        if letter == "\r":
            self.x = 0
        elif letter == "\n":
            if self.y == self.rows - 1:
                self.lines = self.lines[1:] + [""]
            else:
                self.y += 1
        else:
            if self.x == self.columns:
                self.put("\r")
                self.put("\n")
            line = self.lines[self.y].ljust(self.x)
            self.lines[self.y] = line[:self.x] + letter + line[self.x + 1:]
            self.x += 1

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.lines).rstrip("\n")


def watch(command, columns, rows, is_enough, environment):
    """The screen's text once is_enough(text, seconds since the start); then the program is stopped."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(command[0], command, {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", **environment})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    screen, decoder, start = Screen(columns, rows), codecs.getincrementaldecoder("utf-8")(), time.monotonic()
    try:
        while not is_enough(screen.text, time.monotonic() - start):
            if select.select([terminal], [], [], 0.5)[0]:
                screen.feed(decoder.decode(os.read(terminal, 1 << 16)))
        return screen.text
    except OSError as error:
        raise RuntimeError(f"{command} ended; its screen was:\n{screen.text}") from error
    finally:
        os.kill(process, signal.SIGINT)
        while select.select([terminal], [], [], 30)[0]:
            try:
                if not os.read(terminal, 1 << 16):
                    break
            except OSError:
                break
        os.waitpid(process, 0)
        os.close(terminal)


def draw(browser, folder, shown, text):
    """The browser's window becomes the screen; shown: the command line above it."""
    with open(f"{folder}/terminal.html", "w") as file:
        file.write(PAGE.format(command=html.escape(shown), screen=html.escape(text)))
    browser.scheme("dark")
    browser.size(1600, 1000)
    browser.open(f"file://{folder}/terminal.html")
    width, height = browser.script("const box = document.querySelector('pre').getBoundingClientRect(); return [box.width, box.height]")
    browser.size(round(width + 0.5), round(height + 0.5))
