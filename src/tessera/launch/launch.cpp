#include "tessera/launch/launch.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

#include "tessera/base/error.h"

namespace tessera {

namespace {

int number_of_ranks(const std::string& value) {
  int out = 0;
  const char* end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, out);
  require(error == std::errc() && at == end && out >= 1, "-n: '", value,
          "' is not a number of ranks; give a whole number of at least 1");
  return out;
}

/// Slots that a host file names, or -1 where a line leaves them to mpirun.
int slots_of(const std::string& path) {
  std::ifstream file(path);
  require(file.good(), "--hostfile: no file '", path, "'; it has one `HOST slots=N` per line");
  int all = 0;
  for (std::string line; std::getline(file, line);) {
    line = line.substr(0, line.find('#'));
    if (trim(line).empty()) continue;
    const std::size_t at = line.find("slots=");
    if (at == std::string::npos) return -1;
    int slots = 0;
    std::istringstream(line.substr(at + 6)) >> slots;
    all += slots;
  }
  return all;
}

}  // namespace

Launch parse_launch(const Arguments& arguments, const std::vector<std::string>& known,
                    const std::function<std::string(const std::string& name)>& find) {
  Launch out;
  std::size_t i = 0;
  for (; i < arguments.size() && starts_with(arguments[i], "-") && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto value = [&]() -> std::string {
      if (equals != std::string::npos) return word.substr(equals + 1);
      require(i + 1 < arguments.size(), name, " needs a value; see tessera launch --help");
      return arguments[++i];
    };
    if (name == "-n" || name == "--ranks" || name == "-np") {
      out.ranks = number_of_ranks(value());
    } else if (name == "--hostfile") {
      out.hostfile = value();
    } else if (name == "--bind") {
      out.bind = value();
      require(out.bind == "auto" || out.bind == "core" || out.bind == "none", "--bind: '", out.bind,
              "' is none of auto, core, none");
    } else if (name == "--backend") {
      out.backend = value();
      require(out.backend == "auto" || out.backend == "mpi" || out.backend == "tcp", "--backend: '",
              out.backend, "' is none of auto, mpi, tcp");
    } else if (name == "--unsupervised") {
      out.unsupervised = true;
    } else if (name == "--verbose") {
      out.verbose = true;
    } else if (name == "--dry-run") {
      out.dry_run = true;
    } else if (name == "--help" || name == "-h") {
      out.help = true;
      return out;
    } else {
      const std::vector<std::string> near = nearest(
          name, {"-n", "--ranks", "--backend", "--hostfile", "--bind", "--verbose", "--dry-run"},
          1);
      fail(Fault::Usage, "launch: unknown flag ", name,
           near.empty() ? "" : "; nearest is " + near.front(),
           "; flags of the command come after it: tessera launch -n 8 -- train ...");
    }
  }
  if (i < arguments.size() && arguments[i] == "--") ++i;
  out.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  require(out.ranks > 0,
          "launch: the number of ranks is missing; tessera launch -n 8 -- train ...");
  require(!out.command.empty(), "launch: no command; tessera launch -n ", out.ranks,
          " -- train ...");
  require(
      out.backend != "tcp" || out.hostfile.empty(),
      "launch: --backend tcp starts ranks on this machine; leave --hostfile to mpirun, or start "
      "the command on each host with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and with the "
      "same secret (--secret-file FILE), which you can copy with ssh HOST 'umask 077; cat > FILE' "
      "< FILE");
  const bool runs = std::ranges::find(known, out.command.front()) != known.end();
  if (runs || out.command.front() == "version") return out;
  const std::string path = find ? find(out.command.front()) : "";
  require(!path.empty(), "launch: '", out.command.front(), "' does not run on ranks, only ",
          join(known), " do, and programs that call Tessera, like python3 train.py; ",
          "run it without launch");
  out.is_program = true;
  out.command.front() = path;
  return out;
}

Arguments rank_words(const Launch& launch, const std::string& program) {
  Arguments out;
  if (!launch.is_program) out.push_back(program);
  out.insert(out.end(), launch.command.begin(), launch.command.end());
  return out;
}

Arguments tcp_words(const Launch& launch, const Launcher& launcher) {
  constexpr int kMost = 1024;
  require(launch.ranks <= kMost, "launch: -n ", launch.ranks,
          ": with --backend tcp ranks are processes of this machine, at most ", kMost,
          "; give fewer, or --devices N for ranks that are threads");
  require(launch.bind != "core" || launch.ranks <= launcher.cores,
          "launch: --bind core: there are ", launch.ranks, " ranks, but this process may use only ",
          launcher.cores, " cores; leave it out, or give at most as many ranks as cores");
  const bool bound = launch.bind != "none" && launch.ranks <= launcher.cores;
  Arguments out = {launcher.program,   "launch", "--unsupervised",        "-n",
                   text(launch.ranks), "--bind", bound ? "core" : "none", "--"};
  out.insert(out.end(), launch.command.begin(), launch.command.end());
  return out;
}

Arguments mpirun_words(const Launch& launch, const Launcher& launcher) {
  Arguments out = {launcher.mpirun, "-n", text(launch.ranks)};
  out.insert(out.end(), {"-x", text(kStopByInput, "=1")});
  if (launcher.root) out.emplace_back("--allow-run-as-root");
  const bool local = launch.hostfile.empty();
  const int slots = local ? launcher.cores : slots_of(launch.hostfile);
  if (!local) out.insert(out.end(), {"--hostfile", launch.hostfile});
  const bool crowded = slots >= 0 && launch.ranks > slots;
  // A rank that waits inside MPI would keep the core from the one it waits for.
  if (crowded) out.insert(out.end(), {"--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
  // Every rank gets as many neighbouring cores as there are for it, and so counts its threads.
  const int each = local && !crowded ? launcher.cores / launch.ranks : 1;
  const bool bound = launch.bind == "core" || (launch.bind == "auto" && local && !crowded);
  if (bound) {
    out.insert(out.end(), {"--map-by", text("slot:PE=", each), "--bind-to", "core"});
  } else {
    out.insert(out.end(), {"--bind-to", "none"});
  }
  const Arguments of_rank = rank_words(launch, launcher.program);
  out.insert(out.end(), of_rank.begin(), of_rank.end());
  return out;
}

std::string shell_text(const Arguments& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,@%+-";
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += '\'';
  }
  return out;
}

}  // namespace tessera
