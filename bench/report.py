"""What bench/run.py says about its figures: the machine, the table, the verdict on curves."""
import json
import os
import pathlib
import re
import statistics
import subprocess

FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
            "asimd", "sve", "bf16")
NAMES = {"floor": "matrix products alone", "tessera": "Tessera", "pytorch": "PyTorch"}
PRODUCTS = ("matmul", "attention", "attention_grad")  # ops that are products, or consist of them
SUMMED = ("calls", "seconds", "flops", "bytes", "floor_seconds")

median = statistics.median


def machine():
    """What figures depend on. A hypervisor may hide the CPU's name, so its family and model are kept too."""
    info = {}
    for line in pathlib.Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        key, _, value = line.partition(":")
        info.setdefault(key.strip(), value.strip())
    flags = (info.get("flags") or info.get("Features") or "").split()
    caches = {}
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        kind = (index / "type").read_text().strip()
        level = (index / "level").read_text().strip()
        if kind != "Instruction":
            caches[f"L{level}"] = (index / "size").read_text().strip()
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    release = re.search(r'PRETTY_NAME="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text())
    return {
        "cpu": info.get("model name") or os.uname().machine, "family": info.get("cpu family", ""),
        "model": info.get("model", ""), "cores": len(os.sched_getaffinity(0)),
        "features": [name for name in FEATURES if name in flags], "virtual": "hypervisor" in flags,
        "caches": caches, "memory_gib": round(int(memory[1]) / 2**20, 1) if memory else 0,
        "system": release[1] if release else os.uname().sysname, "kernel": os.uname().release,
        "load_before": os.getloadavg()[0],
    }


def commit():
    def git(*words):
        return subprocess.run(["git", *words], capture_output=True, text=True).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "bench", "CMakeLists.txt")
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + (" with changes" if changed else "")


def name_of(result, kind):
    m = result["machine"]
    words = " ".join([re.sub(r"\([RTMrtm]+\)|CPU|Processor|@.*", " ", m["cpu"]), m["family"], m["model"]])
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return f"{result['date']}-{slug}-{kind}"


def json_text(result):
    """One line per field and per run: figures are read by programs, differences by people."""
    fields = []
    for key, value in result.items():
        many = isinstance(value, list) and value and isinstance(value[0], dict)
        text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]" if many else json.dumps(value)
        fields.append(f' "{key}": {text}')
    return "{\n" + ",\n".join(fields) + "\n}\n"


def table(result):
    lines = [f"# {result['date']}: {result['machine']['cpu']}, {result['threads']} threads", "", *about(result)]
    floors = {run["dtype"] for run in result["runs"] if run["who"] == "floor"}
    if floors and "bf16" in result["dtypes"] and "bf16" not in floors:
        lines += ["", "The matrix products alone are left out in bf16, which this processor does not multiply."]
    for w in result["workloads"]:
        lines += ["", *workload(result, w)]
    for profile in result["profiles"]:
        lines += ["", *kernel_table(profile)]
    lines += ["", "## Commands", "", "Of one round:", "", "```sh"]
    lines += dict.fromkeys(run["command"] for run in result["runs"] if run["round"] == 0)
    lines += [*(profile["command"] for profile in result["profiles"]), "```", ""]
    return "\n".join(lines)


def label(run):
    return ", ".join(filter(None, [NAMES[run["who"]], run["how"], run["dtype"] if run["dtype"] != "f32" else ""]))


def about(result):
    m = result["machine"]
    caches = ", ".join(f"{level} {size}" for level, size in m["caches"].items())
    torch = next((run["torch"] for run in result["runs"] if "torch" in run), None)
    out = [
        f"CPU family {m['family']} model {m['model']}, {m['cores']} cores{' (virtual)' if m['virtual'] else ''}, "
        f"{' '.join(m['features'])}; {caches}; {m['memory_gib']} GiB; {m['system']}, Linux {m['kernel']}. "
        f"Tessera at {result['commit']}; " + (f"PyTorch {torch}." if torch else "PyTorch was not there: ./dev bench-peers."),
        "",
        f"{result['rounds']} rounds, each contestant once a round, every other round in reverse order; "
        f"{' and '.join(result.get('dtypes', ['f32']))}. "
        f"Load of the machine {m['load_before']:.2f} before and {m['load_after']:.2f} after; {result['seconds']:.0f} s in all.",
    ]
    if result.get("quick"):
        out += ["", "**A smoke run: these are no figures.**"]
    busy = m["load_before"] > 0.5
    return out + (["", "**The machine was not idle at the start: trust minima and ratios only.**"] if busy else [])


def workload(result, w):
    tokens = w["batch"] * w["context"]
    lines = [f"## {w['name']}, {w['batch']} x {w['context']}", "",
             "| | seconds per step: median (min to max) | tokens/s | peak RSS, MiB | loss, first to last |",
             "|---|---|---|---|---|"]
    for name, runs in contestants(result, w).items():
        seconds = [s for run in runs for s in run["step_seconds"]]
        middle = median(seconds)
        cells = [name, f"{middle:.4f} ({min(seconds):.4f} to {max(seconds):.4f})"]
        if runs[0]["who"] == "floor":
            cells += ["-", "-", "-"]
        else:
            losses = runs[0]["losses"]
            verdict = "" if all(run["plausible"] for run in runs) else " **NOT PLAUSIBLE**"
            cells += [f"{tokens / middle:.0f}", f"{peak(runs) / 2**20:.0f}",
                      f"{losses[0]:.3f} to {losses[-1]:.3f}{verdict}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", f"{w['steps']} steps a round, after {w['warmup']}. Tessera's time includes drawing samples and clipping"
              f"{'' if w['name'] == 'nanogpt' else ', which the peer does not do'}. Tessera reads text, the peer one random "
              "batch again and again.", "", "| ratios within a round | time: median (min to max) | peak RSS |", "|---|---|---|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in ratios(result, w)]
    for name, runs in contestants(result, w).items():
        if "parts" in runs[0]:
            parts = {part: median(run["parts"][part] for run in runs) for part in runs[0]["parts"]}
            lines += ["", f"{name}: " + ", ".join(f"{part} {s:.4f} s" for part, s in parts.items()) + "."]
        if "pack_seconds" in runs[0]:
            lines += ["", f"Packing every weight in both layouts, in {runs[0]['dtype']}, which the products alone leave out, "
                      f"takes {median(run['pack_seconds'] for run in runs):.3f} s."]
    return lines


def contestants(result, w):
    """Runs by label, in the order of the rounds."""
    out = {}
    for run in sorted((run for run in result["runs"] if run["workload"] == w["name"]), key=lambda run: run["round"]):
        out.setdefault(label(run), []).append(run)
    return out


def peak(runs):
    return max(run["peak_rss_bytes"] for run in runs)


def ratios(result, w):
    """Rows of name, time and memory. Times are divided within rounds, so that a machine that changes its speed between
    them does not count."""
    all_runs = contestants(result, w)
    found = {(runs[0]["who"], runs[0]["dtype"], runs[0]["how"]): runs for runs in all_runs.values()}
    peers = [runs for (who, _, _), runs in found.items() if who == "pytorch"]
    out = []

    def add(ours, theirs, name=None):
        memory = "-" if theirs[0]["who"] == "floor" else f"{peak(ours) / peak(theirs):.3f}"
        out.append([f"{label(ours[0])} / {name or label(theirs[0])}", spread(ours, theirs), memory])

    for (who, dtype, how), ours in found.items():
        if who != "tessera" or how:
            continue
        for theirs in found.values():
            other = theirs[0]
            same = other["dtype"] == dtype and other is not ours[0]
            if same and not (other["who"] == "floor" and result["quick"]):
                add(ours, theirs)
        if len(peers) > 1:
            add(ours, [min(round_, key=lambda run: run["median"]) for round_ in zip(*peers)], "PyTorch's fastest")
        if dtype != "f32" and ("tessera", "f32", "") in found:
            add(ours, found["tessera", "f32", ""])
    return out


def spread(ours, theirs, key="median"):
    quotients = [a[key] / b[key] for a, b in zip(ours, theirs)]
    return f"{median(quotients):.3f} ({min(quotients):.3f} to {max(quotients):.3f})"


def kernel_table(profile):
    """Sums by op and kernel; docs/benchmarks.md says what the floor is."""
    whole = profile["step_seconds"]
    sums = {}
    for row in profile["kernels"]:
        total = sums.setdefault((row["op"], row["kernel"]), dict.fromkeys(SUMMED, 0))
        for key in SUMMED:
            total[key] += row[key]
    lines = [f"## Where Tessera's time goes: {profile['workload']}, {profile['dtype']}", "",
             "| op | kernel | calls | ms a step | share | GFLOP/s | GB/s | floor / time |", "|---|---|---|---|---|---|---|---|"]
    for (op, kernel), row in sorted(sums.items(), key=lambda item: -item[1]["seconds"]):
        s = row["seconds"]
        if s < 0.005 * whole:
            continue
        lines.append(f"| {op} | {kernel} | {row['calls']} | {s * 1e3:.1f} | {s / whole:.1%} | {row['flops'] / s / 1e9:.1f} | "
                     f"{row['bytes'] / s / 1e9:.1f} | {row['floor_seconds'] / s:.0%} |")
    products = sum(row["seconds"] for (op, _), row in sums.items() if op in PRODUCTS)
    return lines + ["", f"Of {whole:.4f} s a step; ops below 0.5 % are left out. The step takes {whole / products:.3f} times "
                    f"as long as {', '.join(PRODUCTS)} in it. `./dev bench ops` prints every kernel."]


def of_contestant(result, who):
    """In the order of rounds."""
    return sorted((run for run in result["runs"] if run["who"] == who), key=lambda run: run["round"])
