"""Looking at all threads' frames never stops the process, whatever finalizers do meanwhile."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, sys, threading, time
from opscope.record.stacks import current_frames

class Rubbish:
    def __init__(self):
        self.me = self
    def __del__(self):
        time.sleep(0)          # lets another thread run, in the middle of a collection

def starts_threads():
    while not done:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()

done = False
threading.Thread(target=starts_threads, daemon=True).start()
gc.set_threshold(1)
for _ in range(3000):
    Rubbish()
    frames = current_frames()
    assert threading.main_thread().ident in frames
    assert gc.isenabled()
done = True
print("fine")
"""


def test_collecting_garbage_meanwhile_does_not_deadlock() -> None:
    # In a process of its own: a deadlock here holds the interpreter lock.
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert (run.returncode, run.stdout.strip()) == (0, "fine"), run.stderr
