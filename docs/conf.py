"""Settings of the site, which `make docs` builds into docs/_build/html.

Pages are Markdown (MyST). The reference is made from the docstrings, the evidence from the reports in the repository,
and the gallery by running its scripts; all three are written to docs/generated, which is not kept.
"""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
# The examples are small: boosters that wait for each other's threads would take longer than one thread.
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
# Workers of Spark would take the first Python of the system, which need not have this library.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
# What these say about versions of other libraries is no matter of the examples, whose pages would show it.
warnings.filterwarnings("ignore", module=r"(lightning|pyspark)\.")
sys.path.insert(0, str(HERE))

from docstrings import process_docstring, skip_foreign_members
from gallery_order import place_in_gallery
from generated import write_generated_pages
from readable import make_readable
from sphinx.application import Sphinx
from sphinx_gallery.sorting import FunctionSortKey

import transun

project = "transun"
author = "the transun developers"
copyright = f"2026, {author}"
version = release = transun.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
# The sources of the gallery are not pages.
exclude_patterns = ["_build", "demo/*.md", "gallery/*"]
root_doc = "index"
# Docstrings put code between single backticks, as Markdown does.
default_role = "code"

html_theme = "furo"
html_title = f"transun {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["accessible.js"]
html_copy_source = False
html_show_sphinx = False
# The theme's own style for dark pages underlines the names of modules, as if they were links.
pygments_dark_style = "github-dark"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # those of torch and scikit-learn are not ours
autodoc_typehints = "none"  # the text of an argument says what it is
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": FunctionSortKey(place_in_gallery),
    "ignore_pattern": r"__init__\.py",
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_", "__repr__"),
    "copyfile_regex": r".*\.rst",
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 0,
    "write_computation_times": False,
}


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx looks for sources; make docstrings reStructuredText."""
    write_generated_pages(HERE / "generated")
    # Before napoleon, whose priority is 500, splits a docstring into sections.
    app.connect("autodoc-process-docstring", process_docstring, priority=400)
    app.connect("autodoc-skip-member", skip_foreign_members)
    app.connect("doctree-resolved", make_readable)
