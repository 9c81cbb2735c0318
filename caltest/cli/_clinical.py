"""``caltest clinical FILE``: the measures with which a clinical prediction model is validated."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from caltest.cli._messages import code_of, refuse_if, say_written, show
from caltest.cli._options import (
    FILES,
    about_file,
    add_command,
    add_draws,
    add_file_options,
    add_option,
    columns_of,
    computing,
    facts_of,
    parse_names,
    parse_thresholds,
    problem_of,
    read_file,
    typed_test,
)
from caltest.results._atomic_file import atomic_file

if TYPE_CHECKING:
    from caltest.clinical import ClinicalCalibration
    from caltest.predictions import PredictionFile
    from caltest.results import Verdict

_EXAMPLES = """
examples:
  caltest clinical hospital.csv
  caltest clinical hospital.csv --thresholds 0.1,0.2,0.3
  caltest clinical hospital.csv --groups patient_id --plot curve.png
  caltest clinical hospital.csv --by site
  caltest clinical tumours.csv --event melanoma
  caltest clinical hospital.csv --latex table.tex
  caltest clinical hospital.csv --smoother lowess --json

Events over expected events, calibration intercept and slope, ICI, E50, E90,
Emax and ECI, Brier score, D, U, Q, R2, c-statistic and net benefit, each with
its interval, and errors with what a calibrated model has and a p-value.
"""


def add_to(commands: Any) -> None:
    """Add ``clinical`` to the commands of a parser."""
    clinical = add_command(
        commands,
        "clinical",
        _run,
        help="validate a clinical prediction model: O/E, slope, ICI, c-statistic, net benefit",
        description="Validate predicted risks in the terms of those who validate clinical prediction models: "
        "calibration, discrimination and clinical utility in one table.",
        epilog=_EXAMPLES,
    )
    add = clinical.add_argument
    add("file", type=Path, metavar="FILE", help=FILES)
    words = "risks from which on patients would be treated, separated by commas, for the net benefit"
    add("--thresholds", type=parse_thresholds, metavar="RISKS", help=words)
    words = "the smooth curve of ICI and its kin (default: %(default)s)"
    add("--smoother", choices=("loess", "lowess", "spline"), default="loess", help=words)
    words = "a column with the site of each row: the measures of every site, their mean and the interval for a new site"
    add("--by", dest="subgroup", type=parse_names, metavar="COLUMN", help=words)
    add_option(clinical, "--resamples", "number of Monte Carlo draws (default: 9,999, fewer for large data)")
    add_option(clinical, "--alpha")
    add("--latex", type=Path, metavar="TABLE.tex", help="write the table for a paper (needs the package booktabs)")
    add_option(clinical, "--exit-code")
    add_option(clinical, "--json")
    add_option(clinical, "--plot", "draw the smooth calibration curve, with the risks by outcome")
    add_file_options(clinical)
    add_draws(clinical, "the Monte Carlo draws")


def _run(options: argparse.Namespace) -> int:
    from caltest.clinical import calibration_by_site, clinical_calibration

    refuse_if(options.folds, "the table is about one model, not about one for each fold: leave out --folds")
    by = options.subgroup or []
    refuse_if(len(by) > 1, f"--by names one column, the site, got {len(by)}; 'caltest subgroups' takes several")
    data = read_file(options.file, options)
    refuse_if(
        data.n_classes != 2,
        f"the table is about one event, and {options.file} has {data.n_classes} classes: name one of them, such as "
        f"--event {next(iter(data.columns))}; 'caltest test' takes all classes",
    )
    result = clinical_calibration(
        data.y_true,
        data.y_prob,
        thresholds=options.thresholds,
        smoother=options.smoother,
        **problem_of(data),
        **computing(options),
    )
    sites = None
    if by:
        site = data.subgroup[by[0]]
        sites = calibration_by_site(data.y_true, data.y_prob, site=site, **problem_of(data), **computing(options))
    verdict = about_file(result.verdict, data, str(options.file), options.file, typed_test(options))
    facts = {"source": str(options.file), **facts_of(data)}
    text = _as_text(result, verdict, data, options)
    text = text if sites is None else f"{text}\n\n{sites}"
    found = result.to_dict() | ({} if sites is None else {"by_site": sites.to_dict()})
    show(options, text, facts, verdict=verdict.to_dict(), **found)
    if options.latex is not None:
        with atomic_file(options.latex) as stream:
            stream.write(result.to_latex().encode())
        say_written("table", options.latex)
    if options.plot is not None:
        from caltest.plotting._axes import save_drawn

        save_drawn(lambda figure: result.plot(figure.subplots()), (6.4, 7.0), "", options.plot)
        say_written("picture of the curve", options.plot)
    return code_of(result.decision) if options.exit_code else 0


def _as_text(result: ClinicalCalibration, verdict: Verdict, data: PredictionFile, options: argparse.Namespace) -> str:
    """Return the table below the verdict about the file."""
    from dataclasses import replace

    from caltest.results._text import to_text

    found = result._describe()
    more = "More: --thresholds RISKS (net benefit), --plot FILE, --latex FILE, --json."
    return to_text(
        replace(
            found,
            title=f"{options.file}: {found.title[0].lower()}{found.title[1:]}.",
            conclusion=[verdict.conclusion],
            remarks=[columns_of(data), *found.remarks, more],
        )
    )
