# Between sshd and netconf-subsystem: counts what a server answers, over all servers of a pair, and at
# one answer does what the test wants. Arguments: the folder of the pair, the name of the server, and
# netconf-subsystem with its arguments.
import fcntl
import os
import re
import signal
import subprocess
import sys
import threading
import time

folder, name = sys.argv[1:3]
server = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def read(file):
    try:
        with open(os.path.join(folder, file)) as text:
            return text.read()
    except FileNotFoundError:
        return ""


def count(what):
    """Writes down a request that was answered: its number."""
    with open(os.path.join(folder, "answers"), "a+") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.seek(0)
        number = len(log.readlines())
        log.write("%s %s\n" % (name, what))
    return number


requests = ["hello"]


def forward():
    held = b""
    while True:
        data = os.read(0, 1 << 16)
        if not data:
            break
        held += data
        for end in re.finditer(rb"\n##\n|]]>]]>", held):
            part = held[:end.start()]
            found = re.search(rb"<(?:\w+:)?rpc\b[^>]*>\s*<(?:\w+:)?([\w-]+)", part)
            if found:
                kind = found.group(1).decode()
                kind += " confirmed" if re.search(rb"<(?:\w+:)?confirmed", part) else ""
                requests.append(kind)
        held = held[end.end():] if re.search(rb"\n##\n|]]>]]>", held) else held
        server.stdin.write(data)
        server.stdin.flush()
    server.stdin.close()


threading.Thread(target=forward, daemon=True).start()
held = b""
while True:
    data = os.read(server.stdout.fileno(), 1 << 16)
    if not data:
        break
    held += data
    if not re.search(rb"\n##\n$|]]>]]>$", held):
        continue
    number = count(requests.pop(0))
    what, _, at = read("plan").partition(" ")
    if at and number == int(at):
        if what == "break":
            break
        while not read("pid"):
            time.sleep(0.01)
        os.kill(int(read("pid")), signal.SIGKILL if what == "kill" else signal.SIGINT)
        if what == "kill":
            # The answer never comes; the client's end is this one's.
            continue
        time.sleep(0.2)
    os.write(1, held)
    held = b""
server.kill()
