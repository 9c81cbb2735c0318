"""What stands above pictures, and their captions: one rule for all."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import caltest as ct
from caltest.plotting._heading import QUESTION, decided_in_cells
from caltest.plotting._reliability import save_reliability
from tests.house.pictures import faults_of

LABEL, EVENT = np.arange(200) % 3 == 0, np.linspace(0.3, 0.95, 200)


@pytest.fixture(scope="module")
def tested():
    return ct.calibration_test(LABEL, EVENT, statistic=ct.KS(), n_resamples=99, rng=0)


def above(ax):
    return " ".join(ax.get_title().split())


def test_a_sentence_of_the_verdict_stands_above(tested):
    """Titles named the lens and the error, and never what was found."""
    said = tested.verdict.sentences(brief=True)[0]
    assert said.startswith("Predicted risks are ")
    curve = ct.reliability_curve(LABEL, EVENT)
    assert above(curve.plot(verdict=tested.verdict)) == above(tested.plot()) == said
    monitor = ct.CalibrationMonitor().update(LABEL, EVENT).result()
    assert above(monitor.plot()) == monitor.verdict.sentences(brief=True)[0]
    assert above(curve.plot()) == decided_in_cells(curve.cell_tests().rejected)
    assert decided_in_cells(np.zeros(3, dtype=bool)) == QUESTION, "no cell alone says nothing of all together"
    band = ct.calibration_band(LABEL, EVENT, n_resamples=99, rng=0)
    assert above(band.plot()) == "Calibration is rejected (p = 0.01)."


@pytest.mark.slow(few_draws=True)
def test_the_numbers_are_the_caption(tested):
    curve = ct.reliability_curve(LABEL, EVENT)
    for style in ("classical", "deviation"):
        ax = curve.plot(style=style, verdict=tested.verdict)
        caption = " ".join(ax.get_legend().get_title().get_text().split())
        assert caption.startswith(f"{curve.lens_name}, 200 observations; ECE {curve.error:.3g}")
        assert "ECE" not in ax.get_title()
        assert curve.plot(plt.subplots()[1], style=style, legend=False).get_legend() is None


def test_two_panels_have_a_question_each_and_one_sentence_above_both(tested, tmp_path, monkeypatch):
    """Both diagrams had the same title, and the sentence stood below."""
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    save_reliability(ct.reliability_curve(LABEL, EVENT), tmp_path / "a.png", tested.verdict)
    (figure,) = drawn
    said, *more = tested.verdict.sentences(brief=True)
    assert " ".join(figure.get_suptitle().split()) == said
    assert " ".join(figure.get_supxlabel().split()) == " ".join(more)
    titles = [above(ax) for ax in figure.axes[:2]]
    assert len({*titles, said}) == 3
    assert all(title.endswith("?") for title in titles)
    assert sum(ax.get_legend() is not None for ax in figure.axes) == 1


@pytest.mark.slow(few_draws=True)
def test_pictures_of_the_command_line_can_be_read(tested, tmp_path, monkeypatch):
    """The legend of the square diagram lay upon the caption."""
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    save_reliability(ct.reliability_curve(LABEL, EVENT), tmp_path / "a.png", tested.verdict)
    monkeypatch.undo()
    assert faults_of(drawn[0]) == []
