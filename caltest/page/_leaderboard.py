"""The page of a leaderboard: which models may be the best, their ranks, and why they differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.page._answer import QUESTION, RIGHT, WRONG, Word
from caltest.page._details import Folded, codes_in, explain, linked
from caltest.page._page import template_of, today, versions
from caltest.page._pictures import Picture, picture_of
from caltest.plotting._ranking import MOST_NAMED, draw_measure, draw_parts
from caltest.predictions.inputs._refusals import require
from caltest.ranking import Leaderboard, Ranking
from caltest.ranking._ranking import about_parts
from caltest.results._atomic_file import write_atomically
from caltest.results._decision import level_of, rejects
from caltest.results._description import Table, counted, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 20  # rows of the table above the fold


def write_leaderboard(
    board: Leaderboard,
    path: str | Path,
    *,
    title: str = "Which model is the best?",
    model: str | None = None,
    command: str = "",
) -> Path:
    """Write a self-contained HTML page of a leaderboard.

    From top to bottom it has how many models may be the best, in a word; the answer with its numbers; the confidence
    sets of the ranks by the first measure, as a picture and as a table; what is calibration and what discrimination, if
    scores were divided; and what must hold. The other measures are folded below. The page needs no network and runs no
    program.

    Parameters
    ----------
    board : Leaderboard
        From `caltest.leaderboard`.
    path : str or Path
        Where to write; an existing file is replaced.
    title : str
        Heading of the page.
    model : str, optional
        The model that is judged: the word on top then says whether another one is shown to be better by the first
        measure that ranks models.
    command : str
        How the page was asked for, which it repeats.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    TypeError
        If ``board`` is no `Leaderboard`.
    KeyError
        If there is no such model.
    OSError
        If the file cannot be written.

    See Also
    --------
    write_page : The calibration of one model, or of a few.

    Examples
    --------
    >>> import caltest, tempfile, pathlib
    >>> y_true, y_prob = caltest.datasets.load_digits_predictions()
    >>> board = caltest.leaderboard(y_true, y_prob, by="log_score", n_resamples=99, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = caltest.page.write_leaderboard(board, pathlib.Path(folder) / "board.html")
    ...     "One of 4 models is the best" in path.read_text(encoding="utf-8")
    True
    """
    must = "`board` must be a Leaderboard from leaderboard(...)"
    require(isinstance(board, Leaderboard), must, board, right_type=False)
    first, *others = board.measures
    order = [one.name for one in first]
    folded = [("", [_folded(found, order) for found in others])]
    table, divided = _table_of(first), [one for one in board if one.is_divided]
    rest = table.rows[_SHOWN:]
    independent = f"{'groups' if board.n_groups else 'observations'} are independent of"
    if board.lead:
        independent = f"losses of predictions that are {board.lead} or more apart are not correlated with"
    texts = [*(str(note) for note in board.notes), *board.remarks]
    codes = codes_in(texts)
    html = template_of("leaderboard").render(
        title=title,
        date=today(),
        about=f"{len(first)} models, {counted(board.n_samples)}"
        + ("" if board.n_groups is None else f" in {counted(board.n_groups, 'group')}"),
        word=_word(board, model),
        sentences=_sentences(board, model),
        numbers=_numbers(first, board.n_resamples) if isinstance(first, Ranking) else [],
        picture=_picture(first, order),
        first=Table(table.head, table.rows[:_SHOWN]),
        rest=Table(table.head, rest) if rest else None,
        parts=[(_parts_picture(one), one.tables[1]) for one in divided],
        about_parts=about_parts(divided[0]) if divided else "",
        independent=f"The {independent} each other.",
        remarks=board.remarks,
        board_notes=board.notes,
        folded=folded,
        notes={code: explain(code) for code in codes},
        linked=lambda text: linked(text, codes),
        origin=_origin(board, command),
    )
    write_atomically(path, html)
    return Path(path)


def _word(board: Leaderboard, model: str | None) -> Word:
    """Return the answer in a word: about the model that is judged, or about the first tier."""
    first = board.measures[0]
    if model is not None:
        if board.rankings[0].better_than(model):
            return Word("A better model is shown", "wrong", WRONG.icon)
        return Word("No better model is shown", "right", RIGHT.icon)
    if not isinstance(first, Ranking):
        return Word("No ranks", "unknown", QUESTION)
    number = len(first.best)
    if number == 1:
        return Word(f"One of {len(first)} models is the best", "right", RIGHT.icon)
    return Word(f"{number} of {len(first)} may be the best", "unknown", QUESTION)


def _sentences(board: Leaderboard, model: str | None) -> list[str]:
    """Return the answer in sentences."""
    found = [board.conclusion]
    if model is not None:
        found.insert(0, board.rankings[0].about(model))
    return found


def _numbers(ranking: Ranking, n_resamples: int) -> list[tuple[str, str, str]]:
    """Return the numbers of the answer: name, value and meaning."""
    number = len(ranking)
    pairs, beside = number * (number - 1) // 2, ranking.n_neighbours
    level, smallest = level_of(ranking.confidence_level), number / (n_resamples + 1)
    wrong = sum(bool(rejects(model.pvalue_adjusted, level)) for model in ranking)
    shown, meaning = f"{wrong:,} of {number:,}", f"at {percent(level)} together; others may be wrong, too"
    if not wrong and smallest > level:
        shown, meaning = "cannot tell", "too few draws for so many models"
    return [
        ("may be the best", f"{len(ranking.best):,} of {number:,}", "models that none is shown to be better than"),
        ("pairs told apart", f"{ranking.n_separated:,} of {pairs:,}", "of which one is shown to be better"),
        ("neighbours told apart", f"{beside:,} of {number - 1:,}", "models that follow each other in the table"),
        ("calibration rejected", shown, meaning),
    ]


def _table_of(found: Any) -> Table:
    """Return the table of a measure, which begins with the names of the models."""
    table = found.table
    place = table.head.index("model")
    rows = [[row[place], *row[:place], *row[place + 1 :]] for row in table.rows]
    return Table(["model", *table.head[:place], *table.head[place + 1 :]], rows)


def _folded(found: Any, order: list[str]) -> Folded:
    """Return a further measure."""
    said = found._description()
    tables = [(f"The models by {found.words}", _table_of(found))]
    return Folded(f"By {found.words}", said.conclusion, tables, [_picture(found, order)])


def _picture(found: Any, order: list[str]) -> Picture:
    """Return the ranks by a measure, or its values, legible on a phone."""

    def draw(figure: Figure) -> None:
        draw_measure(figure.subplots(), found, order, longest=24)

    height = 1.2 + 0.27 * min(max(len(order), 3), MOST_NAMED)
    models = [f"{one.name}: {one.rank_set}" for one in found] if isinstance(found, Ranking) else [found.conclusion]
    words = f"Confidence sets of ranks by {found.words}. {'; '.join(models)}."
    return picture_of(draw, (5.4, height), words)


def _parts_picture(ranking: Ranking) -> Picture:
    """Return the parts of a score."""
    words = f"Discrimination against miscalibration in the {ranking.words}; the numbers are in the table."
    return picture_of(lambda figure: draw_parts(figure.subplots(), ranking), (5.4, 4.6), words)


def _origin(board: Leaderboard, command: str) -> Iterator[tuple[str, str]]:
    """Yield what is needed to repeat the page: name and value."""
    yield from versions()
    if command:
        yield "command", command
    yield "measures", ", ".join(found.name for found in board.measures)
    yield "draws", f"{board.n_resamples:,}"
    yield "confidence level", f"{board.confidence_level:g}"
