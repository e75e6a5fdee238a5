"""The recipe of the image and the programs that build and check it."""

import compileall
import json
import os
import py_compile
import re
import shutil
import sys
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "deploy" / "image"
LIBRARY = "usr/lib/python3/dist-packages"


def load(name: str) -> Any:
    spec = spec_from_file_location(f"image_{name}", RECIPE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check, sbom, finish = load("check"), load("sbom"), load("finish")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a tree with one compiled module that passes the checks of files."""
    library = tmp_path / LIBRARY
    library.mkdir(parents=True)
    (library / "good.py").write_text("x = 1\n")
    compile_all(tmp_path)
    return tmp_path


def compile_all(folder: Path, mode: str = "UNCHECKED_HASH") -> None:
    compileall.compile_dir(
        folder,
        quiet=2,
        force=True,
        invalidation_mode=py_compile.PycInvalidationMode[mode],
    )


def file_problems(root: Path) -> list[str]:
    return [
        problem.replace(str(root), "")
        for look in (check.bytecode_problems, check.right_problems)
        for problem in look(str(root))
    ]


def test_a_good_tree_has_no_problem(root: Path) -> None:
    assert file_problems(root) == []


def test_a_module_without_bytecode(root: Path) -> None:
    (root / LIBRARY / "late.py").write_text("")

    assert file_problems(root) == [f"no bytecode: /{LIBRARY}/late.py"]


def test_bytecode_with_a_time_is_refused(root: Path) -> None:
    """It would be compiled again wherever a layer got another time."""
    compile_all(root, "TIMESTAMP")
    (problem,) = file_problems(root)

    assert problem.startswith("bytecode is checked at run time: ")


def test_bytecode_of_another_source(root: Path) -> None:
    (root / LIBRARY / "good.py").write_text("x = 2\n")
    (problem,) = file_problems(root)

    assert problem.startswith("bytecode of another source: ")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0o646, "writable by the user"),
        (0o4755, "runs as another user"),
        (0o2755, "runs as another user"),
    ],
)
def test_modes(root: Path, mode: int, expected: str) -> None:
    (root / "program").write_text("")
    (root / "program").chmod(mode)

    assert file_problems(root) == [f"{expected}: /program"]


def test_a_folder_that_anybody_may_write(root: Path) -> None:
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)

    assert file_problems(root) == ["writable by the user: /tmp"]


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files away, which root may")
@pytest.mark.parametrize(
    ("user", "group", "mode"), [(65534, 0, 0o444), (0, 65534, 0o464)]
)
def test_files_of_the_user(root: Path, user: int, group: int, mode: int) -> None:
    """An owner may make its file writable, so that owning is enough."""
    (root / "own").write_text("")
    (root / "own").chmod(mode)
    os.chown(root / "own", user, group)

    assert file_problems(root) == ["writable by the user: /own"]


def test_contents(root: Path) -> None:
    (root / "usr/bin").mkdir()
    for name in (*check.COMMANDS, "sh"):
        (root / "usr/bin" / name).touch(0o755)
    (root / "usr/bin/nfd").chmod(0o644)
    (root / LIBRARY / "kubernetes").mkdir()
    problems = [p.replace(str(root), "") for p in check.content_problems(str(root))]

    assert sorted(problems) == [
        "a shell: /usr/bin/sh",
        "no bill of materials: usr/share/node-feature-discovery.cdx.json",
        "no command: nfd",
        f"not wanted: /{LIBRARY}/kubernetes",
    ]


def test_links(root: Path) -> None:
    (root / "lib").symlink_to("usr/lib")
    (root / "absolute").symlink_to("/usr/lib")
    (root / "lost").symlink_to("/usr/sbin")

    assert list(check.link_problems(str(root))) == [
        f"leads nowhere: {root}/lost -> /usr/sbin"
    ]


def test_libraries(root: Path) -> None:
    """The interpreter that runs this needs at least a C library."""
    shutil.copy(os.path.realpath(sys.executable), root / "python")
    needed = check.needed_libraries(str(root / "python"))

    assert "libc.so.6" in needed
    assert check.needed_libraries(str(root / LIBRARY / "good.py")) == ()
    assert list(check.library_problems(str(root))) == [
        f"no library {name}, which {root}/python needs" for name in sorted(needed)
    ]


def test_scripts_take_no_modules_from_the_environment(root: Path) -> None:
    (root / "usr/bin").mkdir()
    info = root / LIBRARY / "node_feature_discovery-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(
        "[console_scripts]\nnfd = nfd.cli:main\n[nfd.sources]\nx = y:Z\n"
    )
    finish.write_scripts(str(root))

    assert (root / "usr/bin/nfd").read_text() == (
        f"#!{finish.PYTHON} -I\nimport sys\nfrom nfd.cli import main\n\n"
        "sys.exit(main())\n"
    )


def test_modules_are_compiled_for_a_read_only_root(tmp_path: Path) -> None:
    for folder in finish.library_folders(str(tmp_path)):
        Path(folder).mkdir(parents=True)
        (Path(folder) / "module.py").write_text("x = 1\n")

    assert finish.compile_modules(str(tmp_path))
    assert file_problems(tmp_path) == []

    (tmp_path / LIBRARY / "module.py").write_text("x =\n")

    assert not finish.compile_modules(str(tmp_path))


def test_every_command_of_the_project_is_in_the_image() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert set(project["scripts"]) <= set(check.COMMANDS)


def test_bill_of_materials(root: Path, tmp_path: Path) -> None:
    status = root / sbom.STATUS
    status.mkdir(parents=True)
    (status / "libc6").write_text(
        "Package: libc6\nVersion: 1:2.41-12+deb13u5\nArchitecture: arm64\n"
        "Description: the C library\n more\n"
    )
    for name, version, more in (
        ("node-feature-discovery", "0.1.0", "License-Expression: Apache-2.0\n"),
        ("PyYAML", "6.0.4", "License: MIT\n"),
    ):
        info = root / LIBRARY / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n{more}\ntext\n"
        )
    folder = tmp_path / "fetched"
    folder.mkdir()
    (folder / "libc6_1%3a2.41-12+deb13u5_arm64.deb").write_text("deb")
    with zipfile.ZipFile(folder / "PyYAML-6.0.4-cp313-x.whl", "w") as wheel:
        wheel.writestr("a", "b")
    components = list(sbom.find_components(str(root), sbom.find_hashes([str(folder)])))
    document = sbom.bill(components)
    libc, yaml, project = components

    assert libc["purl"] == (
        "pkg:deb/debian/libc6@1%3A2.41-12%2Bdeb13u5?arch=arm64&distro=trixie"
    )
    assert len(libc["hashes"][0]["content"]) == 64
    assert project["licenses"] == [{"expression": "Apache-2.0"}]
    assert yaml["purl"] == "pkg:pypi/pyyaml@6.0.4"
    assert yaml["licenses"] == [{"license": {"name": "MIT"}}]
    assert "hashes" in yaml
    assert document["metadata"]["component"] == project
    assert document["components"] == [libc, yaml]
    assert json.dumps(document) == json.dumps(sbom.bill(components))


def instructions(stage: int) -> list[str]:
    text = (RECIPE / "Containerfile").read_text()
    joined = re.sub(r"\\\n\s*", " ", re.sub(r"(?m)^#.*\n", "", text))
    return re.split(r"(?m)^(?=FROM )", joined)[stage].splitlines()


def test_the_last_stage_runs_nothing_and_is_unprivileged() -> None:
    last = instructions(-1)
    words = [line.split()[0] for line in last if line]

    assert "FROM scratch" in last
    assert "USER 65534:65534" in last
    assert set(words) == {"FROM", "ARG", "LABEL", "COPY", "ENV", "USER", "CMD"}
    assert any("NFD_HOST_ROOT=/host-" in line for line in last)


def test_the_base_comes_by_argument_and_is_of_the_building_platform() -> None:
    assert "ARG BASE=debian:trixie-slim" in instructions(0)
    assert "FROM --platform=$BUILDPLATFORM ${BASE} AS build" in instructions(1)


def test_what_is_installed_is_pinned_and_wanted() -> None:
    """Each requirement has a version and hashes, and is a dependency of ours."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {
        re.split(r"[<>=!~\[; ]", line)[0].lower().replace("_", "-")
        for line in (*project["dependencies"], *extras["agents"], *extras["nvml"])
    }
    text = (RECIPE / "requirements.txt").read_text().replace("\\\n", " ")
    pinned = [line.split() for line in text.splitlines() if line[:1] != "#"]

    assert {
        words[0].partition("==")[0].lower().replace("_", "-") for words in pinned
    } == wanted
    for words in pinned:
        assert re.fullmatch(r"[\w.-]+==[\w.]+", words[0])
        assert words[1:]
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", w) for w in words[1:])
