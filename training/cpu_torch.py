"""Make an ordinary torch wheel importable on a machine without CUDA libraries.

The PyPI wheel of torch for Linux declares CUDA packages of several gigabytes.
Installed with --no-deps it lacks their shared libraries at import time. This
script puts empty libraries in their place: each function that torch refers to
exists and returns an error code, so torch finds no device and uses the CPU.
Needs cc, nm and objdump. Do nothing where torch imports already.

    pip install --no-deps torch==2.15.0
    python training/cpu_torch.py
"""
from __future__ import annotations

import collections
import glob
import os
import re
import subprocess
import sys
import sysconfig
import tempfile

SYSTEM = re.compile(r"^(ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|z|quadmath)\.so)")
PREFIX = {
    "cudnn": "libcudnn", "cublasLt": "libcublasLt", "cublas": "libcublas", "cufft": "libcufft",
    "cusparseLt": "libcusparseLt", "cusparse": "libcusparse", "cusolver": "libcusolver", "nccl": "libnccl",
    "nvrtc": "libnvrtc", "nvshmem": "libnvshmem_host", "cupti": "libcupti", "cuFile": "libcufile",
    "__cuda": "libcudart", "cuda": "libcudart", "cu": "libcuda",
}  # fmt: skip


def run(*a: str) -> str:
    return subprocess.run(a, capture_output=True, text=True).stdout


def main() -> int:
    if subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0:
        print("torch imports: nothing to do")
        return 0
    lib = os.path.join(sysconfig.get_paths()["purelib"], "torch", "lib")
    files = glob.glob(lib + "/*.so*")
    have = {os.path.basename(f) for f in files}
    missing, defined = set(), set()
    undefined: dict[str, set[str]] = collections.defaultdict(set)
    for f in files:
        missing |= {m for m in re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", f)) if m not in have and not SYSTEM.match(m)}
        defined |= {x.split()[-1].split("@")[0] for x in run("nm", "-D", "--defined-only", f).splitlines()}
        for x in run("nm", "-D", "--undefined-only", f).splitlines():
            kind, sym = x.split()[-2:]
            name, _, version = sym.partition("@")
            if kind not in ("w", "v"):
                undefined[name].add(version.lstrip("@"))
    want: dict[str, dict[str, set[str]]] = collections.defaultdict(lambda: collections.defaultdict(set))
    for name, versions in undefined.items():
        for v in () if name in defined else versions:
            target = v if v in missing else None
            if target is None and not v.startswith(("GLIBC", "GCC", "CXXABI", "GOMP")):
                for p in sorted(PREFIX, key=len, reverse=True):
                    if name.startswith(p) or (p == "nvshmem" and p in name):
                        target = next((m for m in missing if m.startswith(PREFIX[p] + ".so")), None)
                        break
            if target:
                want[target][v].add(name)
    with tempfile.TemporaryDirectory() as tmp:
        for m in sorted(missing):
            src, vmap = os.path.join(tmp, "x.c"), os.path.join(tmp, "x.map")
            names = sorted(set().union(*want[m].values())) if want[m] else []
            open(src, "w").write("".join(f"long {n}(void){{return 100;}}\n" for n in names))
            args = ["cc", "-shared", "-fPIC", "-fno-builtin", "-w", "-o", os.path.join(lib, m), src, "-Wl,-soname," + m]
            versions = [v for v in want[m] if v]
            if versions:
                open(vmap, "w").write("".join("%s { global: %s };\n" % (v, " ".join(x + ";" for x in sorted(want[m][v]))) for v in versions))
                args.append("-Wl,--version-script=" + vmap)
            subprocess.run(args, check=True)
            print(f"{m}: {len(names)} functions")
    return subprocess.run([sys.executable, "-c", "import torch; print('torch', torch.__version__, 'cpu')"]).returncode


if __name__ == "__main__":
    sys.exit(main())
