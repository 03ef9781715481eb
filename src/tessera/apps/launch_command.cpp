/// tessera launch: a command on several ranks, each a process.

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/command.h"
#include "tessera/apps/flags.h"
#include "tessera/base/error.h"
#include "tessera/comm/processes.h"
#include "tessera/files/process.h"
#include "tessera/launch/core_sets.h"
#include "tessera/launch/launch.h"
#include "tessera/launch/launcher_words.h"
#include "tessera/launch/ranks.h"
#include "tessera/launch/start_ranks.h"
#include "tessera/launch/stop_signal.h"
#include "tessera/launch/supervise.h"

namespace tessera {

namespace {

constexpr const char* kHelp =
    "tessera launch -n N [--backend HOW] [--hostfile FILE] [--bind HOW] -- "
    "train|sample|predict|evaluate|verify|doctor|PROGRAM ...\n\n"
    "Runs tessera train, sample, predict, evaluate, verify or doctor --calibrate on N ranks, each "
    "a process;\n"
    "or a program whose calls of tessera.train() are one run, like python3 train.py.\n\n"
    "  -n, --ranks N       how many ranks\n"
    "  --backend HOW       mpi: mpirun starts them; tcp: tessera does, on this machine, without "
    "MPI;\n"
    "                      auto (default): mpi if tessera was built with it, else tcp\n"
    "  --hostfile FILE     the machines, one `HOST slots=N` per line; without: this machine\n"
    "  --bind HOW          core: every rank keeps to its own cores; none; auto (default): core if\n"
    "                      all ranks are on this machine and have a core each, else none\n"
    "  --verbose           also print mpirun's own messages\n"
    "  --dry-run           print the call of what starts the ranks instead of running it\n\n"
    "A first Ctrl-C, SIGTERM, SIGUSR1 or SIGHUP makes the ranks of `train` save and stop; a second "
    "one ends them at once.\n"
    "The exit code is the command's; 128 + n if signal n ended a rank or what started it.\n";

/// The path of a program, as a shell finds it; empty: nowhere.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? kUsualPath : path, ':')) {
    const std::string candidate = folder + "/" + name;
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

/// The path of a program that a user names: what is no command and has no path is looked for.
std::string find_named(const std::string& name) {
  if (name.find('/') == std::string::npos) return find_program(name);
  return access(name.c_str(), X_OK) == 0 && !std::filesystem::is_directory(name) ? name : "";
}

std::string signal_text(int signal) {
  return text("signal ", signal, " (", strsignal(signal), ")");
}

constexpr int kAnswers = 60;  // seconds that mpirun has to tell its version

/// mpirun of Open MPI, whose flags we know.
std::string find_mpirun() {
  const std::string get = "on Debian: apt-get install openmpi-bin";
  for (const char* name : {"mpirun", "mpirun.openmpi"}) {
    const std::string path = find_program(name);
    if (path.empty()) continue;
    ProcessOptions options;
    options.timeout_seconds = kAnswers;
    const ProcessResult version = run_process({path, "--version"}, options);
    if (version.timed_out)
      fail(Fault::Resource, "launch: '", path, " --version' did not finish within ", kAnswers,
           " s; try it by hand");
    if (version.output.find("Open MPI") != std::string::npos) return path;
    if (version.exit_code > 128)
      fail(Fault::Resource, "launch: '", path, " --version' was ended by ",
           signal_text(version.exit_code - 128), "; start again");
    if (find_program("mpirun.openmpi").empty()) {
      fail(Fault::Resource, "launch: ", path, " is not Open MPI's, the only mpirun supported; ",
           get, ", or start `tessera` with your own launcher instead of `launch`");
    }
  }
  fail(Fault::Resource, "launch: there is no mpirun in PATH; ", get,
       ", or use --devices N, which makes ranks of threads");
}

/// As the command's own flags say; else what is usual.
std::chrono::seconds timeout_of(const Launch& launch) {
  if (launch.is_program) return std::chrono::seconds(RunConfig().distributed_timeout);
  const Arguments& command = launch.command;
  Problems ignored;  // the ranks will tell
  std::vector<std::string> notices;
  RunConfig config;
  ignored.gather([&] {
    const Arguments flags(command.begin() + 1, command.end());
    config = configure(parse_flags(flags, field_flags(), ignored), ignored, notices);
  });
  return std::chrono::seconds(config.distributed_timeout);
}

/// True of the exit codes of docs/reference/errors.md: 128 + n with a signal n among them.
bool is_documented(int code) {
  constexpr int kLastSignal = 64;
  return code == 0 || (code >= 2 && code <= 8) || code == kExitStopped ||
         (code > 128 && code <= 128 + kLastSignal);
}

/// Why a run has failed of which no rank spoke; empty: nothing is to be said. `starter` is what has
/// started the ranks.
std::string reason_of(const LaunchEnd& end, const Launch& launch, const std::string& starter) {
  const std::string again = launch.command.front() == "train"
                                ? "; saved checkpoints are intact: resume with --resume auto"
                                : "; start again";
  const bool in_order =
      end.code == 0 || end.code == kExitStopped;  // before a request at once took effect
  if (end.error_seen || in_order) return {};
  if (end.hung) return text(starter, " started no rank and did not end; it was ended now", again);
  if (end.lost_ranks)
    return text(
        "all ranks ended without an error message (killed, perhaps by the system for lack of "
        "memory); ",
        starter, " did not notice and was ended now", again);
  if (end.killed)
    return text(starter, " was ended by ", signal_text(end.code - 128), ", and its ranks with it",
                again);
  if (end.requested != 0)
    return text("ended at once by ", signal_text(end.requested), ", as requested", again);
  const std::string own = end.words.empty() ? "" : text("; ", starter, " says: ", end.words);
  if (end.code > 128 && is_documented(end.code)) {
    const std::string died = rank_that_died(end.words), who = died.empty() ? "a rank" : died;
    return text(who, " was ended by ", signal_text(end.code - 128),
                launch.is_program ? "" : " before the ranks could say more", again);
  }
  return text("the ranks did not finish (", starter, " ended with code ", end.code, ")", own,
              launch.verbose || own.empty() ? "" : "; --verbose shows its full output");
}

int code_of(const LaunchEnd& end) {
  const bool in_order = end.code == 0 || end.code == kExitStopped;
  if (end.hung) return static_cast<int>(Fault::Peer);
  if (end.lost_ranks) return end.error_seen ? static_cast<int>(Fault::Peer) : 128 + SIGKILL;
  if (end.requested != 0 && !in_order) return 128 + end.requested;
  if (is_documented(end.code)) return end.code;
  return static_cast<int>(end.error_seen ? Fault::Peer : Fault::Resource);
}

}  // namespace

int launch_command(const Arguments& arguments, Console& console, const OwnFamilies&) {
  const Launch launch = parse_launch(arguments, commands_on_ranks(), find_named);
  if (launch.help) {
    console.out << kHelp;
    return 0;
  }
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const bool stops_in_order = launch.is_program || launch.command.front() == "train";
  if (launch.unsupervised)
    return start_ranks(launch.ranks, rank_words(launch, program), launch.bind == "core",
                       !stops_in_order);
  const bool tcp = launch.backend == "tcp" ||
                   (launch.backend == "auto" && !has_mpi() && launch.hostfile.empty());
  require(tcp || has_mpi(),
          "launch: this program was built without MPI; install Open MPI (on Debian: apt-get "
          "install libopenmpi-dev openmpi-bin) and build again, or give --backend tcp, which needs "
          "no MPI");
  require(
      launched_as(0).how == Launched::Alone,
      "launch: this process is already a rank, by its variables (",
      [] { return launched_as(0).who; }, "); give the command without launch, or unset them");
  if (tcp) setenv(kStopByInput, "1", 1);
  std::optional<NothingToSave> nothing;  // while mpirun is looked for, which may take its time
  if (stops_in_order) {
    catch_stop_signals();
    nothing.emplace();
  }
  const int cores = static_cast<int>(usable_core_sets().size());
  const Launcher launcher = {tcp ? "" : find_mpirun(), program, cores, geteuid() == 0};
  const Arguments words = tcp ? tcp_words(launch, launcher) : mpirun_words(launch, launcher);
  if (launch.dry_run) {
    console.out << shell_text(words) << "\n";
    return 0;
  }
  StopRequests requests;
  nothing.reset();
  console.out.flush();
  const std::string starter = tcp ? "the starter of the ranks" : launcher.mpirun;
  const auto report = [&](const LaunchEnd& end) {
    const std::string reason = reason_of(end, launch, starter);
    return reason.empty() ? "" : "error: " + reason + "\n";
  };
  const LaunchEnd end = supervise(
      words, {launch.hostfile.empty(), stops_in_order, launch.verbose, timeout_of(launch), !tcp},
      report, requests, console);
  return code_of(end);
}

}  // namespace tessera
