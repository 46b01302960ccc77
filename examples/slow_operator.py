"""An operator that is slow for three reasons: the program of docs/tutorial.md.

    python examples/slow_operator.py                        as it is
    python examples/slow_operator.py --mend loop,pause,lock without its three faults

Readings of sensors come in batches; `normalise` brings each to mean 0 and deviation 1 and keeps
statistics that another thread, `publish`, sends away.
"""

from __future__ import annotations

import argparse
import threading
import time

import numpy as np

import opscope

BATCHES, ROWS, COLUMNS = 50, 96, 256
MESSAGES = 25
MENDS = ("loop", "pause", "lock")

lock = threading.Lock()
seen = {"batches": 0, "largest": 0.0}
mended = set()


@opscope.custom_op
def clip(batch):
    """Cut off what is further out than three deviations."""
    return np.clip(batch, -3.0, 3.0)


@opscope.custom_op
def normalise(batch):
    """The operator that is slow."""
    result = by_arrays(batch) if "loop" in mended else by_numbers(batch)
    limit = calibration()
    with lock:
        seen["batches"] += 1
        seen["largest"] = max(seen["largest"], float(np.abs(result).max()))
    return clip(result) * limit


def by_numbers(batch):
    """Mean and deviation of each row, number by number."""
    rows = []
    for row in batch.tolist():
        mean = sum(row) / len(row)
        deviation = (sum((value - mean) ** 2 for value in row) / len(row)) ** 0.5
        rows.append([(value - mean) / deviation for value in row])
    return np.array(rows)


def by_arrays(batch):
    """The same, all rows at once."""
    mean = batch.mean(axis=1, keepdims=True)
    return (batch - mean) / batch.std(axis=1, keepdims=True)


def calibration():
    """What the sensor says of itself; it answers a question every two milliseconds at most."""
    if "pause" not in mended or calibration.answer is None:
        time.sleep(0.002)
        calibration.answer = 1.0
    return calibration.answer


calibration.answer = None


@opscope.custom_op
def publish():
    """Send the statistics away; a stand-in for a slow connection sleeps."""
    if "lock" in mended:
        with lock:
            report = dict(seen)
        send(report)
    else:
        with lock:
            send(seen)


def send(report):
    """Takes four milliseconds."""
    time.sleep(0.004)


def publishing(stop):
    """Publishes until it is told to stop, but so many times at least."""
    sent = 0
    while sent < MESSAGES or not stop.is_set():
        publish()
        sent += 1
        time.sleep(0.002)


def main(args=None):
    """Normalise some batches while another thread publishes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mend", default="", help=f"of {', '.join(MENDS)}, with commas between")
    mended.update(filter(None, parser.parse_args(args).mend.split(",")))
    random = np.random.default_rng(0)
    batches = random.normal(20.0, 4.0, (BATCHES, ROWS, COLUMNS))
    stop = threading.Event()
    publisher = threading.Thread(target=publishing, args=(stop,), name="publisher")
    publisher.start()
    total = sum(float(np.abs(normalise(batch)).sum()) for batch in batches)
    stop.set()
    publisher.join()
    print(f"{seen['batches']} batches, mean distance {total / batches.size:.4f}")


if __name__ == "__main__":
    main()
