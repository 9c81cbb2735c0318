"""The API reference: public names in groups as people think, and links to them wherever a page names them.

A group is a list of names, or what is left of a room. A result class stands beside the function that returns it.
"""

import inspect
import typing
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import roles
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

import caltest

DOCS = Path(__file__).resolve().parents[1]

GROUPS: list[tuple[str, str, str, str]] = [
    ("tests", "Is the model calibrated?", "hypothesis_tests", "calibration_test calibration_table calibration_report "
     "gce_table multilabel_table subgroup_tests cross_val_calibration by_fold residual_correlation revision_test"),
    ("classical", "Classical tests by name", "hypothesis_tests", "spiegelhalter_test hosmer_lemeshow_test cox_test "
     "safe_hosmer_lemeshow_test giviti_test giviti_belt stukel_test osius_rojek_test le_cessie_test "
     "sum_of_squares_test bridge_test skce_test tcal_test"),
    ("enough", "Is it calibrated well enough, and with how many observations?", "hypothesis_tests", ""),
    ("errors", "How large is the error?", "estimation", "calibration_error noise_floor l2_interval cutoff_interval "
     "bootstrap_interval squared_l2_target calibration_in_the_large calibration_slope histogram_regression"),
    ("scores", "Scores", "estimation", "score_decomposition brier_score log_score spherical_score accuracy "
     "mean_confidence overconfidence_score underconfidence_score entropy normalized_entropy"),
    ("curves", "Where is it miscalibrated? Curves and diagrams", "estimation", ""),
    ("comparison", "Which model is better calibrated?", "comparison", ""),
    ("ranking", "Ranks of many models", "ranking", ""),
    ("recalibration", "Repair", "recalibration", ""),
    ("clinical", "Clinical prediction models", "clinical", ""),
    ("streaming", "Large data and monitoring", "streaming", ""),
    ("torch", "Training penalties for PyTorch", "torch", ""),
    ("scorers", "Scorers for scikit-learn", "scorers", ""),
    ("plotting", "Pictures", "plotting", ""),
    ("page", "The page without Python", "page", ""),
    ("datasets", "Bundled predictions", "datasets", ""),
    ("statistics", "Statistics", "statistics", ""),
    ("predictions", "Lenses, cells (bins), distances and files", "predictions", ""),
    ("resampling", "Null distributions and p-values", "resampling", ""),
    ("simulation", "How good are the methods? Simulation", "simulation", ""),
    ("results", "Results, conclusions and settings", "results", ""),
]  # fmt: skip
"""File, title, room, and names in the order of the page; no names stand for all that other groups leave."""


def paths() -> dict[str, dict[str, str]]:
    """For each room its public names and the shortest path of each, ``caltest.NAME`` where that exists."""
    rooms = {group[2] for group in GROUPS}
    public = {name for name in dir(caltest) if inspect.ismodule(getattr(caltest, name))}
    if public != rooms:
        problem = f"rooms without a group in {Path(__file__).name}: {sorted(public ^ rooms)}"
        raise ValueError(problem)
    named = {room: import_module(f"caltest.{room}").__all__ for room in rooms}
    short = set(caltest.__all__)
    return {
        room: {name: f"caltest.{name}" if name in short else f"caltest.{room}.{name}" for name in names}
        for room, names in named.items()
    }


def returned_by(thing: Any) -> str:
    """The name of the class that a function returns, as its annotation spells it."""
    annotation = getattr(thing, "__annotations__", {}).get("return", "") if inspect.isfunction(thing) else ""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


def grouped() -> dict[str, list[str]]:
    """The paths in each group, functions before the classes that they return."""
    known = paths()
    open_names = {room: list(names) for room, names in known.items()}
    things = {room: {name: getattr(import_module(f"caltest.{room}"), name) for name in known[room]} for room in known}
    found: dict[str, list[str]] = {}
    for file, _, room, names in sorted(GROUPS, key=lambda group: not group[3]):
        chosen = names.split() or list(open_names[room])
        kinds = {name: inspect.isclass(things[room][name]) for name in chosen}
        chosen = sorted(chosen, key=kinds.get) if not names else chosen
        chosen += [
            name
            for name in open_names[room]
            if name not in chosen and any(name == returned_by(things[room][other]) for other in chosen)
        ]
        open_names[room] = [name for name in open_names[room] if name not in chosen]
        found[file] = [known[room][name] for name in chosen]
    return found


def is_alias(path: str) -> bool:
    """Whether a name is that of a type, which has no page."""
    room, _, name = path.rpartition(".")
    return typing.get_origin(getattr(import_module(room), name)) is not None


def write(app: Sphinx) -> None:
    """Write the pages of the groups, which autosummary reads."""
    folder = DOCS / "reference"
    folder.mkdir(exist_ok=True)
    titles = {group[0]: group[1] for group in GROUPS}
    pages = {file: [path for path in found if not is_alias(path)] for file, found in grouped().items()}
    heads = {}
    for file, title, room, _ in GROUPS:
        says = (import_module(f"caltest.{room}").__doc__ or "").strip().split("\n")[0]
        rows = "\n".join(f"   {path}" for path in pages[file])
        heads[file] = (
            f"{title}\n{'=' * len(title)}\n\n{says}\n\n"
            f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{rows}\n"
        )
    listed = "\n".join(f"   {file}" for file in titles)
    heads["index"] = (
        "API reference\n=============\n\nEvery public function and class, by the question that it answers. "
        "The ones that are typed often are in ``caltest``, the others in its rooms.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{listed}\n"
    )
    for file, text in heads.items():
        place = folder / f"{file}.rst"
        if not place.exists() or place.read_text(encoding="utf-8") != text:
            place.write_text(text, encoding="utf-8")


def short_names() -> dict[str, str]:
    """The path of each public name that only one room has, as pages and docstrings spell it."""
    found: dict[str, set[str]] = {}
    for room, names in paths().items():
        for name, path in names.items():
            for spelled in (name, f"caltest.{name}", f"{room}.{name}", f"caltest.{room}.{name}"):
                found.setdefault(spelled, set()).add(path)
    return {name: one.copy().pop() for name, one in found.items() if len(one) == 1 and not is_alias(min(one))}


def resolve(app: Sphinx, env: Any, node: pending_xref, content: nodes.Node) -> nodes.Node | None:
    """Find what a docstring names without its room."""
    path = app.config.site_names.get(node.get("reftarget", "").removesuffix("()"))
    if node.get("refdomain") != "py" or path is None:
        return None
    return env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", path, node, content)


def link(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Make a public name in a page's code font a link to the reference."""
    domain = app.env.get_domain("py")
    for literal in list(tree.findall(nodes.literal)):
        text = literal.astext().split("(")[0]
        path = app.config.site_names.get(text)
        if (
            path is None
            or (path.rpartition(".")[2].islower() and "_" not in text)
            or isinstance(literal.parent, nodes.reference)
        ):
            continue
        place = domain.objects.get(path)
        if place is None or page == place.docname:
            continue
        target = nodes.reference("", "", internal=True, refuri=app.builder.get_relative_uri(page, place.docname))
        literal.replace_self(target)
        target += literal


def public(role: str, source: str, text: str, line: int, inliner: Any, *_: Any) -> tuple[list, list]:
    """Single backticks of a docstring: code, which `link` makes a link if it is a public name."""
    return [nodes.literal(source, text)], []


class OwnMembers(SphinxPostTransform):
    """An attribute in the list of a class leads to the description in the same class, or nowhere."""

    default_priority = 5  # before references are resolved

    def run(self, **_: Any) -> None:
        """Take away references that would find an attribute of that name in another class."""
        objects = self.env.get_domain("py").objects
        for node in list(self.document.findall(pending_xref)):
            own = f"{node.get('py:module')}.{node.get('py:class')}.{node['reftarget']}"
            if node.get("refspecific") and own not in objects:
                node.replace_self(node[0])


def skip(app: Sphinx, kind: str, name: str, *_: Any) -> bool | None:
    """Leave out what scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the reference before its pages are searched for."""
    write(app)
    app.add_config_value("site_names", short_names(), "env")
    roles.register_local_role("public", public)
    app.add_post_transform(OwnMembers)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", resolve)
    app.connect("doctree-resolved", link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
