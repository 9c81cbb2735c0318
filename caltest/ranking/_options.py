"""Options of the leaderboard, beside those of all functions."""

from typing import Annotated

from caltest.comparison._options import DrawsOption
from caltest.predictions.inputs._options import DesignOptions, Option, ReadOptions, TimeOptions, WorkOptions
from caltest.predictions.inputs._validation import validate_level


class LeaderboardOptions(ReadOptions, DesignOptions, TimeOptions, DrawsOption, WorkOptions, total=False):
    """What a leaderboard takes."""

    confidence_level: Annotated[
        float,
        Option(
            "float",
            "Probability with which the confidence sets of all ranks contain them together, at least.",
            0.95,
            validate_level,
        ),
    ]
