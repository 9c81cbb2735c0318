"""The method ``plot`` of results: the room of pictures draws, which the package names when it is imported."""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to import than caltest itself
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar


class Picture:
    """The method ``plot`` of a class of results, such as ``plot = Picture("plot_reliability")``.

    Parameters
    ----------
    name : str
        The function that draws.
    known : callable, optional
        Whether there is a picture of a result; one of which there is none, such as that of all folds, has no ``plot``.
    """

    find: ClassVar[Callable[[str], Callable[..., Any]]]
    """Returns the function of a name. `caltest` sets it: pictures stand above results, and are loaded when drawn."""

    def __init__(self, name: str, known: Callable[[Any], bool] | None = None) -> None:
        self.name, self.known = name, known

    def __get__(self, result: Any, kind: type | None = None) -> Any:
        """Return the method of a result."""
        if result is None:
            return self
        if self.known is not None and not self.known(result):
            msg = f"there is no picture of this {type(result).__name__}."
            raise AttributeError(msg)
        name = self.name

        def plot(ax: Any = None, **options: Any) -> Any:
            """Draw the result.

            Parameters
            ----------
            ax : matplotlib.axes.Axes or array of them, optional
                What to draw into; new axes by default.
            **options
                Passed to the function of `caltest.plotting`.

            Returns
            -------
            matplotlib.axes.Axes or array of them
                What was drawn into.
            """
            return Picture.find(name)(result, ax, **options)

        return plot
