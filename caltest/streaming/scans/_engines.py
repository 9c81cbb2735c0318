"""Who reads the fragments of files: threads, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from itertools import groupby, islice
from typing import Any, NamedTuple

from caltest.predictions.inputs._refusals import refuse
from caltest.streaming.scans._fragments import Fragment, Reading
from caltest.streaming.states._state import CalibrationState

_TOGETHER = 8  # states that a worker merges, and files whose states come to the caller as one


class Step(NamedTuple):
    """What is new: bytes that were read, and the state of a fragment or of whole files unless it failed."""

    n_bytes: int
    files: tuple[str, ...] = ()
    fragment: Fragment | None = None
    state: CalibrationState | None = None
    errors: tuple[Exception, ...] = ()


def on_threads(fragments: Sequence[Fragment], reading: Reading, workers: int) -> Generator[Step, None, None]:
    """Read fragments in threads; after an error what has begun is finished."""
    waiting = iter(fragments)
    running: dict[Future[CalibrationState], Fragment] = {}
    with ThreadPoolExecutor(workers) as pool:
        while True:
            for fragment in islice(waiting, workers + 1 - len(running)):  # one more than threads, so that none waits
                running[pool.submit(reading.state_of, fragment)] = fragment
            if not running:
                return
            for job in wait(running, return_when=FIRST_COMPLETED).done:
                fragment = running.pop(job)
                try:
                    state = job.result()
                except Exception as error:
                    waiting = iter(())
                    yield Step(fragment.n_bytes, errors=(error,))
                    continue
                yield Step(fragment.n_bytes, fragment=fragment, state=state)


class Piece(NamedTuple):
    """What a worker returns: files or a part of one, the bytes of their state unless it failed, and what failed."""

    files: tuple[str, ...]
    n_bytes: int
    state: bytes | None
    errors: tuple[Exception, ...] = ()


def on_cluster(fragments: Sequence[Fragment], reading: Reading, scheduler: Any) -> Generator[Step, None, None]:
    """Read fragments on the workers of a Dask cluster, which also merge most states.

    A piece depends on nothing but its fragments, so that it can be made again wherever its worker was lost; the caller
    adds each piece of whole files once.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        refuse("`scheduler` needs Dask: install caltest with the extra dask, or dask and distributed.", ImportError)
    if not isinstance(scheduler, str | Client):
        refuse(
            f"`scheduler` must be the address of a Dask scheduler or a Client, got {type(scheduler).__name__}.",
            TypeError,
        )
    with ExitStack() as stack:
        client = stack.enter_context(Client(scheduler)) if isinstance(scheduler, str) else scheduler

        def submit(function: Any, *arguments: Any) -> Any:  # never what an earlier call, before a file changed, found
            return client.submit(function, *arguments, pure=False)

        def joined(pieces: list[Any]) -> list[Any]:
            return [submit(_join, pieces[i : i + _TOGETHER]) for i in range(0, len(pieces), _TOGETHER)]

        files = []
        for _, parts in groupby(fragments, key=lambda fragment: fragment.file):
            level = [submit(_piece_of, reading, part) for part in parts]
            while len(level) > 1:
                level = joined(level)
            files += level
        several = joined(files)
        del files
        for job in as_completed(several):
            try:
                piece = job.result()
            except Exception as error:
                yield Step(0, errors=(error,))
                continue
            state = None if piece.state is None else CalibrationState.from_bytes(piece.state)
            yield Step(piece.n_bytes, piece.files, None, state, piece.errors)


def _piece_of(reading: Reading, fragment: Fragment) -> Piece:
    """Return a fragment's piece."""
    try:
        return Piece((fragment.file,), fragment.n_bytes, reading.state_of(fragment).to_bytes())
    except (ValueError, OSError) as error:  # an error of the file; the others are not lost
        return Piece((fragment.file,), fragment.n_bytes, None, (error,))


def _join(pieces: Sequence[Piece]) -> Piece:
    """Return the piece of files, or of parts of one; of a file nothing is kept if one of its parts failed."""
    failed = {piece.files for piece in pieces if piece.state is None}
    good = [piece for piece in pieces if piece.files not in failed]
    states = [CalibrationState.from_bytes(piece.state) for piece in good if piece.state is not None]
    for other in states[1:]:
        states[0].merge(other)
    return Piece(
        tuple(dict.fromkeys(name for piece in good or pieces[:1] for name in piece.files)),
        sum(piece.n_bytes for piece in pieces),
        states[0].to_bytes() if states else None,
        tuple(error for piece in pieces for error in piece.errors),
    )
