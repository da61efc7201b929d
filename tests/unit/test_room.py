"""Units in one worker: together, or one alone."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from beirnl.executors.room import Room


def test_who_is_alone_meets_nobody_and_the_others_do_meet():
    room, lock = Room(), threading.Lock()
    inside: list[str] = []
    met: dict[str, set[str]] = {"alone": set(), "together": set()}
    together = threading.Barrier(3)

    def stay(kind: str, wait: bool = False) -> None:
        with room.alone() if kind == "alone" else room.together():
            with lock:
                inside.append(kind)
            if wait:
                together.wait(20)  # all three are inside at once
            time.sleep(0.002)
            with lock:
                inside.remove(kind)
                met[kind] |= set(inside)

    with ThreadPoolExecutor(12) as threads:
        first = [threads.submit(stay, "together", True) for _ in range(3)]
        rest = [threads.submit(stay, "alone" if n % 3 == 0 else "together") for n in range(60)]
        for done in (*first, *rest):
            done.result(20)
    assert met == {"alone": set(), "together": {"together"}}


def test_an_error_inside_lets_the_others_in():
    room = Room()
    for way in (room.alone, room.together, room.alone):
        try:
            with way():
                raise KeyError
        except KeyError:
            pass
    with room.together():
        pass
