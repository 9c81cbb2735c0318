"""``caltest report`` of forecasts whose labels are known only after a lead."""

import pytest

LEAD = ("--time", "day of issue", "--lead", "7D")


@pytest.mark.slow(few_draws=True)
def test_the_page_is_that_of_the_lead(forecasts, tmp_path, run):
    path, page = forecasts[0], tmp_path / "page.html"
    assert run("report", path, *LEAD, "-o", page, "--resamples", "199")[0] == 0
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert "labels less than 7 days apart depend on each other" in text
    assert "day of issue=" not in text  # dates are no subgroups
    assert run("report", path, "-o", page, "--resamples", "99")[0] == 0
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert "<dt>Caution</dt> <dd>Residuals are correlated in the order of the column" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((*LEAD, "--groups", "site"), "in groups or in time: leave out --groups, or --time and --lead"),
        (("--time", "day of issue", "--lead", "400"), "--lead (400 steps of 1 day) must not be longer than"),
    ],
)
def test_what_is_refused(forecasts, tmp_path, run, options, words):
    code, _, err = run("report", forecasts[0], "-o", tmp_path / "page.html", *options)
    assert (code, words in err) == (2, True), err
