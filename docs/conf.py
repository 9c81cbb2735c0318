"""The site: ``pip install '.[docs]' && python -m sphinx docs site -W``. No network is needed."""

import sys
from pathlib import Path

import caltest

sys.path[:0] = [str(Path(__file__).resolve().parent)]

project = "caltest"
author = project_copyright = "the caltest authors"
version = release = caltest.__version__
language = "en"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "_site.formulas",
    "_site.pages",
    "_site.reference",
    "_site.report",
    "_site.bibliography",
    "_site.measured",
]
exclude_patterns = [
    "_site",
    "_templates",
    "gallery",
    "examples/*.py",
    "examples/*.ipynb",
    "examples/*.md5",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = False  # docstrings name types in words, such as array-like
default_role = "public"

myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = {"math"}
myst_heading_anchors = 4
math_renderer = html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"  # docstrings say the types
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "doc_module": ("caltest",),
    "backreferences_dir": None,
    "reset_modules": ("matplotlib",),
    "plot_gallery": True,
}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = "caltest"
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "collapse_navigation": True,
    "header_links_before_dropdown": 4,
    "navigation_depth": 2,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"reference/generated/*": []}  # a list of all other names on each of 300 pages takes a minute to build
