# NETCONF sessions for `onbeat deploy`, by ncclient. Reads a request a line on standard input, writes
# what came of it a line on standard output, both JSON. Decides nothing; ends with its input, and with
# it end all sessions, which takes back what is not confirmed (RFC 6241 8.4).
import sys
sys.path[:] = [folder for folder in sys.path if folder]  # no module of the working directory
import getpass
import json
import os
import queue
import signal
import threading

# Who started this decides what an interruption means.
signal.signal(signal.SIGINT, signal.SIG_IGN)
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # nothing else writes there


def answer(**what):
    answers.write(json.dumps(what) + "\n")
    answers.flush()


try:
    from lxml import etree
    from ncclient import manager
    from ncclient.operations import RaiseMode
    from ncclient.transport.errors import SSHUnknownHostError
except ImportError as why:
    answer(missing=str(why))
    sys.exit(1)

sessions = {}


def connect(of):
    password = None
    if of["asks"]:
        password = getpass.getpass("Password of %s: " % of["shown"])
    session = manager.connect_ssh(
        of["host"], port=of["port"], username=of["user"], key_filename=of["key"],
        password=password, allow_agent=of["key"] is None, look_for_keys=of["key"] is None,
        hostkey_verify=True, timeout=of["timeout_s"])
    session.timeout = of["timeout_s"]
    session.raise_mode = RaiseMode.NONE
    session.huge_tree = True
    sessions[of["device"]] = session
    answer(capabilities=list(session.server_capabilities))


def serve(of):
    device = of["device"]
    try:
        if of["rpc"] is None:
            connect(of)
        else:
            # Whatever the answer is: what it means is not decided here.
            answer(reply=sessions[device].dispatch(etree.fromstring(of["rpc"])).xml)
    except SSHUnknownHostError as why:
        answer(unknown_host=why.fingerprint)
    except BaseException as why:
        session = sessions.pop(device, None)
        answer(lost="%s: %s" % (type(why).__name__, why))
        if session is not None:
            session._session.close()  # no request: it might not be answered, either


def work():
    while True:
        serve(requests.get())


requests = queue.Queue()
threading.Thread(target=work, daemon=True).start()
answer(ready=None)
for line in sys.stdin:
    requests.put(json.loads(line))
os._exit(0)  # also amid a request
