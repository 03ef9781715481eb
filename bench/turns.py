"""For programs that measure in turns what is no training step: the turns, the machine, the files they write."""
import datetime
import json
import os
import pathlib
import re
import shlex
import statistics
import subprocess
import sys
import time

FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
            "asimd", "sve", "bf16")

# Of the peer: glibc gives large blocks back to the system as they are freed, and each step would touch new pages.
KEEP_MEMORY = ["env", "MALLOC_MMAP_THRESHOLD_=4294967296", "MALLOC_TRIM_THRESHOLD_=8589934592"]

median = statistics.median


def add_common_flags(parser):
    parser.add_argument("--build", default="build", metavar="FOLDER", help="where the programs are [build]")
    parser.add_argument("--peer", default="build/peers/bin/python", metavar="PYTHON",
                        help="a Python that has PyTorch [build/peers/bin/python]")
    parser.add_argument("--output", metavar="FOLDER", help="where the table goes [bench/results]")
    parser.add_argument("--under", type=shlex.split, default=[], metavar="COMMAND",
                        help="what every contestant is run under, such as 'nice -n -10'")


def require_programs(parser, args, *names):
    for name in names:
        if not os.access(f"{args.build}/{name}", os.X_OK):
            parser.error(f"{args.build}/{name} is not there; run ./dev bench, which builds it")


def has_torch(args, *also):
    needs = ", ".join(["torch", *also])
    probe = [args.peer, "-c", f"import {needs}"]
    found = os.access(args.peer, os.X_OK) and subprocess.run(probe, capture_output=True).returncode == 0
    if not found:
        say(f"PyTorch is skipped: {args.peer} does not have {needs}; ./dev bench-peers installs what is missing")
    return found


def take_turns(args, names, tasks, figure, **about):
    """Every contestant once a round, every other round in reverse order; what becomes of it, as the JSON file has it."""
    begin = time.time()
    result = {"date": datetime.date.today().isoformat(), "rounds": args.rounds, "warmup": args.warmup, "steps": args.steps,
              **about, "machine": machine(), "commit": commit(), "runs": []}
    for number in range(args.rounds):
        for who in list(tasks) if number % 2 == 0 else list(tasks)[::-1]:
            say(f"round {number + 1} of {args.rounds}: {names[who]}")
            result["runs"].append({"who": who, "round": number} | tasks[who]())
            say(f"    {figure(result['runs'][-1])}")
    result["machine"]["load_after"] = os.getloadavg()[0]
    result["seconds"] = round(time.time() - begin, 1)
    return result


def of_contestant(result, who):
    """In the order of rounds."""
    return sorted((run for run in result["runs"] if run["who"] == who), key=lambda run: run["round"])


def spread(ours, theirs):
    quotients = [a["median"] / b["median"] for a, b in zip(ours, theirs)]
    return f"{median(quotients):.3f} ({min(quotients):.3f} to {max(quotients):.3f})"


def told_by(words, under=()):
    """Runs a command; returns what it printed, and the command as a line that holds on any machine."""
    words = [str(word) for word in words]
    done = subprocess.run([*under, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench: this failed with {done.returncode}: {shlex.join(words)}\n{done.stderr[-4000:]}")
    return done.stdout, line_of(words)


def line_of(words):
    words = [str(word) for word in words]
    return shlex.join(pathlib.Path(word).name if os.path.isabs(word) else word for word in words)


def save(name, result, text):
    """The table, printed too, and what it was made from."""
    name.parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(f"{name}.json").write_text(json_text(result))
    pathlib.Path(f"{name}.md").write_text(text)
    print(text)
    say(f"written to {name}.md and {name}.json")


def show(folder, kind, result, text):
    """Prints the table; where a folder is named, it goes there too, with what it was made from."""
    if folder:
        save(pathlib.Path(folder) / f"{datetime.date.today().isoformat()}-{kind}", result, text)
    else:
        print(text)


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


def about(result):
    m = result["machine"]
    caches = ", ".join(f"{level} {size}" for level, size in m["caches"].items())
    torch = next((run["torch"] for run in result["runs"] if "torch" in run), None)
    out = [
        f"CPU family {m['family']} model {m['model']}, {m['cores']} cores{' (virtual)' if m['virtual'] else ''}, "
        f"{' '.join(m['features'])}; {caches}; {m['memory_gib']} GiB; {m['system']}, Linux {m['kernel']}. "
        f"Tessera at {result['commit']}; " + (f"PyTorch {torch}." if torch else "PyTorch was not there: ./dev bench-peers."),
        "",
        f"{result['rounds']} rounds, each contestant once a round, every other round in reverse order; in "
        f"{' and '.join(result.get('dtypes', ['f32']))}. "
        f"Load of the machine {m['load_before']:.2f} before and {m['load_after']:.2f} after; {result['seconds']:.0f} s in all.",
    ]
    busy = m["load_before"] > 0.5
    return out + (["", "**The machine was not idle at the start: trust minima and ratios only.**"] if busy else [])


def say(text):
    print(f"-- {text}", file=sys.stderr, flush=True)
