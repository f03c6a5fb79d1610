"""Which files tools/lint reads: those that are not recorded as clean with all they include."""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

LINT = pathlib.Path(sys.argv.pop(1)) / "tools" / "lint"


class FilesThatAreRead(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("tools/lint", LINT.read_text())
        shutil.copymode(LINT, self.root / "tools/lint")
        self.write("sim/a.hpp", '#include "sim/b.hpp"\n')
        self.write("sim/b.hpp", "")
        self.write("sim/a.cpp", '#include "sim/a.hpp"\n')
        self.write("sim/c.cpp", "#include <vector>\n")
        self.write("tests/sim/a_test.cpp", '#include "sim/a.hpp"\n')
        self.write(".clang-tidy", "Checks: '*'\n")
        self.git("init", "-q")
        self.write(".gitignore", "/build/\n")
        self.commit()
        self.write("build/lint/clean", "")
        self.record_all()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *arguments):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        return subprocess.run(["git", *identity, *arguments], cwd=self.root, check=True, text=True, stdout=subprocess.PIPE).stdout

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a")

    def record_all(self):
        """As a run over everything does where all is clean."""
        script = ("import importlib.machinery, sys; sys.dont_write_bytecode = True;"
                  "lint = importlib.machinery.SourceFileLoader('lint', 'tools/lint').load_module();"
                  "lint.record({path: lint.digest(path) for path in ['sim/a.cpp', 'sim/c.cpp']})")
        subprocess.run([sys.executable, "-W", "ignore", "-c", script], cwd=self.root, check=True)

    def read(self, *options):
        done = subprocess.run([self.root / "tools/lint", "--list", *options], check=True, text=True, stdout=subprocess.PIPE)
        return done.stdout.split()

    def test_nothing_where_nothing_changed(self):
        self.assertEqual(self.read(), [])
        self.assertEqual(self.read("--all"), ["sim/a.cpp", "sim/c.cpp"])

    def test_what_includes_a_changed_header_through_another(self):
        self.write("sim/b.hpp", "int other;\n")
        self.assertEqual(self.read(), ["sim/a.cpp"])
        self.commit()
        self.assertEqual(self.read(), ["sim/a.cpp"])
        self.record_all()
        self.assertEqual(self.read(), [])

    def test_a_changed_and_a_new_source(self):
        self.write("sim/c.cpp", "int other;\n")
        self.write("sim/d.cpp", "")
        self.assertEqual(sorted(self.read()), ["sim/c.cpp", "sim/d.cpp"])

    def test_everything_under_other_rules_or_without_a_record(self):
        self.write(".clang-tidy", "Checks: 'bugprone-*'\n")
        self.assertEqual(self.read(), ["sim/a.cpp", "sim/c.cpp"])
        self.git("checkout", "-q", ".clang-tidy")
        self.assertEqual(self.read(), [])
        (self.root / "build/lint/clean").unlink()
        self.assertEqual(self.read(), ["sim/a.cpp", "sim/c.cpp"])


if __name__ == "__main__":
    unittest.main()
