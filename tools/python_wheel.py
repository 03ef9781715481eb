#!/usr/bin/env python3
"""Makes a wheel of python/tessera and a built library, with nothing but the standard library of Python.

    python_wheel.py [LIBRARY [FOLDER]]

LIBRARY (build/archive/python/tessera/libtessera_c.so) is put beside the modules; what it needs goes into
tessera.libs, but for the libraries of every Linux, with the licences that Debian has of it. The tag says how
new a C library all that takes. The same files make the same bytes. FOLDER (build/wheel) gets the wheel, whose
path is printed.

It is also what pyproject.toml names: `pip install .` calls build_wheel().
"""

import argparse
import base64
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from python_keywords import keywords_stub  # noqa: E402
BUILT = os.path.join(ROOT, "build", "archive", "python", "tessera", "libtessera_c.so")
SOURCES = os.path.join(ROOT, "python", "tessera")
# What a wheel for manylinux may expect to find (PEP 600).
OF_THE_SYSTEM = re.compile(
    r"(ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|linux-vdso)\.so.*"
)
METADATA = """Metadata-Version: 2.1
Name: tessera
Version: {version}
Summary: trains Transformers on many devices: the same program, the same numbers, on any mesh
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Classifier: Programming Language :: Python :: 3
Classifier: Operating System :: POSIX :: Linux
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", nargs="?", default=BUILT)
    parser.add_argument("folder", nargs="?", default=os.path.join(ROOT, "build", "wheel"))
    words = parser.parse_args()
    print(write_wheel(words.library, words.folder))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
    """PEP 517: makes a wheel of the source tree that is the working folder; returns its name."""
    made = subprocess.run(["./dev", "wheel", "--no-install"], stdout=subprocess.PIPE, text=True)
    if made.returncode != 0:
        sys.exit("./dev wheel fails; its words are above. ./dev build installs what it needs.")
    path = made.stdout.splitlines()[-1]
    shutil.copy(path, wheel_directory)
    return os.path.basename(path)


def version_of(library: str) -> str:
    version = ctypes.CDLL(library).tessera_version
    version.restype = ctypes.c_char_p
    return version().decode()


def write_wheel(library: str, folder: str) -> str:
    if not os.path.exists(library):
        sys.exit(f"python_wheel.py: no {library}; build the target tessera_c")
    version = version_of(library)
    needed = needed_libraries(library)
    tag = f"py3-none-{platform_of([library, *needed.values()])}"
    files = {}
    for where, _, names in sorted(os.walk(SOURCES)):
        for name in sorted(names):
            if name.endswith((".py", ".typed")):
                path = os.path.join(where, name)
                files["tessera/" + os.path.relpath(path, SOURCES)] = read(path)
    files["tessera/_keywords.pyi"] = keywords_stub(library).encode()
    files["tessera/libtessera_c.so"] = read(library)
    info = f"tessera-{version}.dist-info/"
    files[info + "licenses/LICENSE"] = read(os.path.join(ROOT, "LICENSE"))
    for name, path in sorted(needed.items()):
        files["tessera.libs/" + name] = read(path)
        if licence := licence_of(path):
            files[info + "licenses/" + name] = read(licence)
    files[info + "METADATA"] = METADATA.format(version=version).encode()
    wheel = f"Wheel-Version: 1.0\nGenerator: tools/python_wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files[info + "WHEEL"] = wheel.encode()
    record = [f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items()]
    files[info + "RECORD"] = "".join([*record, info + "RECORD,,\n"]).encode()

    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"tessera-{version}-{tag}.whl")
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            about = zipfile.ZipInfo(name)  # its date is the same every time
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = (0o755 if ".so" in name else 0o644) << 16
            out.writestr(about, data)
    os.replace(path + ".new", path)
    return path


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def needed_libraries(library: str) -> dict:
    """Names and paths of the libraries that it needs, directly or not, less those of the system."""
    listed = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout
    out = {}
    for line in listed.splitlines():
        name, _, place = (part.strip() for part in line.partition("=>"))
        if OF_THE_SYSTEM.fullmatch(os.path.basename(name.split()[0])):
            continue
        path = place.split(" (")[0]
        if not os.path.isabs(path):
            sys.exit(f"python_wheel.py: {library} needs {name}, which is not found; install it")
        out[name] = path
    return out


def licence_of(library: str) -> str:
    """The file in which a Debian says under which terms a library may be passed on; empty: there is none."""
    found = subprocess.run(
        ["dpkg-query", "--search", "*/" + os.path.basename(os.path.realpath(library))],
        capture_output=True,
        text=True,
    ).stdout
    path = f"/usr/share/doc/{found.partition(':')[0]}/copyright"
    return path if os.path.exists(path) else ""


def platform_of(libraries: list) -> str:
    """manylinux_2_36_x86_64: the newest version of the C library that one of them asks for, and no
    older one than this build was tried on."""
    newest = max(
        int(minor) for path in libraries for minor in re.findall(rb"GLIBC_2\.(\d+)", read(path))
    )
    return f"manylinux_2_{max(newest, OLDEST)}_{os.uname().machine}"


OLDEST = 36  # Debian 12


if __name__ == "__main__":
    main()
