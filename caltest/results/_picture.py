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
    name : str or None
        The function that draws; None in a subclass of which there is no picture, which has no ``plot``.
    """

    find: ClassVar[Callable[[str], Callable[..., Any]]]
    """Returns the function of a name. `caltest` sets it: pictures stand above results, and are loaded when drawn."""

    def __init__(self, name: str | None) -> None:
        self.name = name

    def __get__(self, result: Any, kind: type | None = None) -> Any:
        """Return the method of a result."""
        if self.name is None:
            msg = f"there is no picture of {(kind or type(result)).__name__}."
            raise AttributeError(msg)
        if result is None:
            return self
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
