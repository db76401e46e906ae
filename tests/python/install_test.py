"""What `pip install ./python` runs: setup.py has the C++ half built, and takes it into the package; and who may use it."""

import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness

SOURCES = os.path.join(os.path.dirname(os.path.dirname(harness.HERE)), "python")


class Install(unittest.TestCase):
    def test_setup_finds_the_module_that_it_has_built(self):
        with tempfile.TemporaryDirectory() as folder:
            # From the sources' folder, as pip does: `import tutti` must not find the package there.
            done = subprocess.run([sys.executable, "setup.py", "build_ext", "--build-lib", folder, "--build-temp", folder],
                                  cwd=SOURCES, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(len(glob.glob(os.path.join(folder, "tutti", "_tutti*.so"))), 1, done.stdout)
            self.assertTrue(os.path.exists(os.path.join(folder, "tutti", "_built_for.py")))

    def test_a_module_of_another_pytorch_says_so(self):
        with tempfile.TemporaryDirectory() as folder:
            package = os.path.join(folder, "tutti")
            shutil.copytree(os.path.join(SOURCES, "tutti"), package)
            with open(os.path.join(package, "_built_for.py"), "w", encoding="utf-8") as file:
                file.write('TORCH = "0.4"\n')
            done = subprocess.run([sys.executable, "-c", "import tutti"], env={**os.environ, "PYTHONPATH": folder},
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("was built for PyTorch 0.4, and this is", done.stdout)


if __name__ == "__main__":
    try:
        import setuptools  # noqa: F401
    except ImportError:
        os.environ.setdefault("TUTTI_PYTHON_MISSING", "python3-setuptools is missing")
    harness.main({})
