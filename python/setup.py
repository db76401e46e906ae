"""`pip install ./python`: the script ../tutti builds the C++ half for this interpreter and its PyTorch."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
VERSION = re.search(r"project\(tutti VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


class BuildByTutti(build_ext):
    def build_extension(self, ext):
        ask = "import os, tutti._tutti; print(tutti._tutti.__file__)"
        done = subprocess.run(
            [str(ROOT / "tutti"), "python", "-c", ask],
            cwd="/",  # here, `import tutti` would find the sources
            env={**os.environ, "TUTTI_PYTHON": sys.executable, "PYTHONPATH": ""},
            stdout=subprocess.PIPE,
            text=True,
        )
        if done.returncode != 0:
            raise SystemExit("tutti: the C++ half could not be built; see above (pip install -v shows all)")
        built = pathlib.Path(done.stdout.strip().splitlines()[-1])
        target = pathlib.Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(built, target)
        shutil.copyfile(built.parent / "_built_for.py", target.parent / "_built_for.py")


setup(
    name="tutti",
    version=VERSION,
    description="Data-parallel training of PyTorch models with every strategy, explained and predicted",
    packages=["tutti"],
    package_data={"tutti": ["py.typed", "*.pyi"]},
    ext_modules=[Extension("tutti._tutti", sources=[])],
    cmdclass={"build_ext": BuildByTutti},
    python_requires=">=3.8",
    license="see LICENSE",
)
