"""Lists every sub-package of the three roots, so that none is dropped from the wheel.

All else about the distribution stands in ``pyproject.toml``. setuptools cannot find packages by itself
when a folder is installed under another name (``crypto/`` as ``affidavit.crypto``), and what is not listed is
left out without a word.
"""

from setuptools import find_packages, setup

ROOTS = ("actors", "crypto", "tools")

setup(
    packages=[
        name
        for root in ROOTS
        for name in (f"affidavit.{root}", *(f"affidavit.{root}.{sub}" for sub in find_packages(root)))
    ]
)
