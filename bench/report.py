"""What bench/run.py says about its figures: the machine, the table, the verdict on curves."""
import json
import os
import pathlib
import re
import statistics
import subprocess

FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
            "asimd", "sve", "bf16")
NAMES = {"floor": "matrix products alone", "tessera": "Tessera", "pytorch": "PyTorch",
         "pytorch compiled": "PyTorch, compiled"}

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
    floors = runs_of(result, "gpt2-small", "floor")
    for w in result["workloads"]:
        lines += ["", *workload(result, w, floors if w["name"] == "gpt2-small" else [])]
    lines += ["", *kernel_table(result["profile"]), "", "## Commands", "", "Of one round:", "", "```sh"]
    lines += dict.fromkeys(run["command"] for run in result["runs"] if run["round"] == 0)
    lines += [result["profile"]["command"], "```", ""]
    return "\n".join(lines)


def about(result):
    m = result["machine"]
    caches = ", ".join(f"{level} {size}" for level, size in m["caches"].items())
    torch = next((run["torch"] for run in result["runs"] if "torch" in run), None)
    out = [
        f"CPU family {m['family']} model {m['model']}, {m['cores']} cores{' (virtual)' if m['virtual'] else ''}, "
        f"{' '.join(m['features'])}; {caches}; {m['memory_gib']} GiB; {m['system']}, Linux {m['kernel']}. "
        f"Tessera at {result['commit']}; " + (f"PyTorch {torch}." if torch else "PyTorch was not there: ./dev bench-peers."),
        "",
        f"{result['rounds']} rounds, each contestant once a round, every other round in reverse order; f32 throughout. "
        f"Load of the machine {m['load_before']:.2f} before and {m['load_after']:.2f} after; {result['seconds']:.0f} s in all.",
    ]
    if result.get("quick"):
        out += ["", "**A smoke run: these are no figures.**"]
    busy = m["load_before"] > 0.5
    return out + (["", "**The machine was not idle at the start: trust minima and ratios only.**"] if busy else [])


def workload(result, w, floors):
    lines = [f"## {w['name']}", "",
             "| f32 | seconds per step: median (min to max) | tokens/s | peak RSS, MiB | loss, first to last |",
             "|---|---|---|---|---|"]
    for who in NAMES:
        runs = floors if who == "floor" else runs_of(result, w["name"], who)
        if not runs:
            continue
        seconds = [s for run in runs for s in run["step_seconds"]]
        middle = median(seconds)
        cells = [NAMES[who], f"{middle:.4f} ({min(seconds):.4f} to {max(seconds):.4f})"]
        if who == "floor":
            cells += ["-", "-", "-"]
        else:
            losses = runs[0]["losses"]
            verdict = "" if all(run["plausible"] for run in runs) else " **NOT PLAUSIBLE**"
            cells += [f"{w['tokens'] / middle:.0f}", f"{max(run['peak_rss_bytes'] for run in runs) / 2**20:.0f}",
                      f"{losses[0]:.3f} to {losses[-1]:.3f}{verdict}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *ratios(result, w, floors)]
    return lines


def ratios(result, w, floors):
    """Within rounds, so that a machine that changes its speed between them does not count."""
    ours = runs_of(result, w["name"], "tessera")
    both = "; both clip" if w["peer"] == "nanogpt" else " and clipping, which the peer's does not"
    out = [f"{w['steps']} steps a round, after {w['warmup']}; ratios are of medians within a round. Tessera's time includes "
           f"drawing samples{both}. Tessera reads text, the peer one random batch again and again."]
    for who in ("pytorch", "pytorch compiled"):
        theirs = runs_of(result, w["name"], who)
        if theirs:
            out.append(f"Tessera / {NAMES[who]}: {spread(ours, theirs)} of the time.")
            parts = {part: median(run["parts"][part] for run in theirs) for part in theirs[0]["parts"]}
            out.append(f"{NAMES[who]}: " + ", ".join(f"{part} {s:.4f} s" for part, s in parts.items()) + ".")
    if floors and ours and not result["quick"]:
        out.append(f"Tessera / matrix products alone: {spread(ours, floors)}. Packing every weight in both layouts, which "
                   f"the products alone leave out, takes {median(run['pack_seconds'] for run in floors):.3f} s.")
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
    lines = [f"## Where Tessera's time goes: {profile['preset']}", "",
             "| op | kernel | calls | ms a step | share | GFLOP/s | GB/s | floor / time |", "|---|---|---|---|---|---|---|---|"]
    for (op, kernel), row in sorted(sums.items(), key=lambda item: -item[1]["seconds"]):
        s = row["seconds"]
        if s < 0.005 * whole:
            continue
        lines.append(f"| {op} | {kernel} | {row['calls']} | {s * 1e3:.1f} | {s / whole:.1%} | {row['flops'] / s / 1e9:.1f} | "
                     f"{row['bytes'] / s / 1e9:.1f} | {row['floor_seconds'] / s:.0%} |")
    return lines + ["", f"Of {whole:.4f} s a step; ops below 0.5 % are left out. `./dev bench ops` prints every kernel."]


def runs_of(result, workload_name, who):
    return [run for run in of_contestant(result, who) if run["workload"] == workload_name]


def of_contestant(result, who):
    """In the order of rounds."""
    return sorted((run for run in result["runs"] if run["who"] == who), key=lambda run: run["round"])
