#!/usr/bin/env python3
"""The package as a whole: type hints everywhere, docstrings on what is public, nothing heavy at import, no leftovers.

Usage: package_test.py [LIBRARY]
"""

import ast
import importlib.util
import subprocess
import sys
import tempfile
import unittest

from parts import ROOT

PACKAGE = ROOT / "tools" / "python" / "rubato"


def functions(tree, prefix=""):
    """(qualified name, node) of functions and methods, and of those within them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + node.name, node
        named = isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        yield from functions(node, f"{prefix}{node.name}." if named else prefix)


def public(tree, prefix=""):
    """(qualified name, node) of classes, functions and methods that others use: no name on the way begins with _."""
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            yield prefix + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from public(node, f"{prefix}{node.name}.")


def without_hints(node):
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *filter(None, (arguments.vararg, arguments.kwarg))]
    missing = [one.arg for one in named if one.annotation is None and one.arg not in ("self", "cls")]
    if node.returns is None and node.name != "__init__":
        missing.append("return")
    return missing


class Package(unittest.TestCase):
    def sources(self):
        for path in sorted(PACKAGE.rglob("*.py")):
            yield path, ast.parse(path.read_text(encoding="utf-8"))

    def test_every_function_has_type_hints(self):
        missing = [f"{path.relative_to(PACKAGE)}: {name}: {', '.join(names)}" for path, tree in self.sources() for name, node in functions(tree)
                   if (names := without_hints(node))]
        self.assertEqual(missing, [])
        self.assertTrue((PACKAGE / "py.typed").exists())

    def test_types_agree(self):
        """What hints say, checked where Debian's mypy is installed (tools/setup --python)."""
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("python3-mypy is not installed")
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", cache, "--python-version", "3.9", "--disallow-untyped-defs",
                                   "--disallow-any-generics", "--ignore-missing-imports", "rubato"],
                                  cwd=PACKAGE.parent, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_public_names_have_docstrings(self):
        import rubato

        for name in rubato.__all__:
            self.assertTrue((getattr(rubato, name).__doc__ or "").strip(), name)
        self.assertEqual([path.name for path, tree in self.sources() if not ast.get_docstring(tree)], [])

    def test_what_measures_has_docstrings(self):
        missing = [f"{path.name}: {name}" for path, tree in self.sources() if path.parent.name == "capture"
                   for name, node in public(tree) if not ast.get_docstring(node)]
        self.assertEqual(missing, [])

    def test_import_loads_nothing_heavy(self):
        code = ("import sys; import rubato; rubato.Applier; rubato.explore; rubato.Results; rubato.measure; rubato.measure_latency; import rubato.hooks; "
                "print([name for name in ('torch', 'pandas', 'numpy', 'matplotlib') if name in sys.modules])")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(PACKAGE.parent)})
        self.assertEqual(done.stdout, "[]\n", done.stderr)


if __name__ == "__main__":
    while len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
        sys.argv.pop(1)
    unittest.main()
