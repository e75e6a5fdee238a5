"""Build stage: writes the start scripts and compiles all modules of the image.

Usage: finish.py ROOT. The interpreter that runs this must be the image's version.
"""

import compileall
import configparser
import os
import py_compile
import sys
from collections.abc import Iterator, Mapping

PACKAGES = "usr/lib/python3/dist-packages"
PYTHON = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"

# -I: neither the environment nor the working folder add modules.
SCRIPT = """\
#!{python} -I
import sys
from {module} import {function}

sys.exit({function}())
"""


def entry_points(text: str) -> Mapping[str, str]:
    """Return the console scripts of an `entry_points.txt`: name to `module:function`."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # keep capitals
    parser.read_string(text)
    if not parser.has_section("console_scripts"):
        return {}
    return dict(parser.items("console_scripts"))


def write_scripts(root: str) -> None:
    """Write the console scripts of the project into usr/bin."""
    packages = os.path.join(root, PACKAGES)
    for name in sorted(os.listdir(packages)):
        if not name.startswith("node_feature_discovery-"):
            continue  # other distributions' scripts are tools of developers
        with open(os.path.join(packages, name, "entry_points.txt")) as file:
            scripts = entry_points(file.read())
        for script, target in sorted(scripts.items()):
            module, _, function = target.partition(":")
            path = os.path.join(root, "usr/bin", script)
            with open(path, "w") as file:
                file.write(
                    SCRIPT.format(python=PYTHON, module=module, function=function)
                )


def library_folders(root: str) -> Iterator[str]:
    """Return the folders that hold modules, below the root."""
    yield os.path.join(root, "usr/lib", os.path.basename(PYTHON))
    yield os.path.join(root, PACKAGES)


def compile_modules(root: str) -> bool:
    """Compile every module; the files of the image never change, so nothing is checked.

    With modification times in them, the bytecode would be thrown away where a
    registry or a rebuild changes times, and could not be written again.
    """
    return all(
        compileall.compile_dir(
            folder,
            maxlevels=50,
            force=True,
            quiet=1,
            stripdir=root,
            prependdir="/",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        for folder in library_folders(root)
    )


def main(root: str) -> int:
    """Finish the image below `root`; 1 when a module does not compile."""
    write_scripts(root)
    return 0 if compile_modules(root) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
