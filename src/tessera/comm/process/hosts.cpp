#include "tessera/comm/process/hosts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "tessera/base/cores.h"
#include "tessera/base/text.h"
#include "tessera/comm/backend/cores.h"
#include "tessera/comm/process/tcp/sockets.h"

namespace tessera::process {

namespace {

const Process& of(std::span<const Process> all, int rank) {
  return all[static_cast<std::size_t>(rank)];
}

}  // namespace

Process this_process(int machine) {
  Process out;
  out.machine = machine;
  out.pid = getpid();
  out.cores = usable_cores();
  gethostname(out.host_name.data(), out.host_name.size() - 1);
  struct stat space = {};
  if (stat("/proc/self/ns/pid", &space) == 0)
    out.pid_space_device = space.st_dev, out.pid_space = space.st_ino;
  return out;
}

std::string Process::problem(int ranks) const {
  if (machine < 0 || machine >= ranks) return text("the machine of rank ", machine);
  if (pid < 1) return text("the process ", pid);
  const bool ends = std::find(host_name.begin(), host_name.end(), '\0') != host_name.end();
  return ends ? "" : "a host name without an end";
}

std::string loss_text(const std::string& who, int number) {
  if (number == EPROTO)
    return who + " sent what no rank sends, and was let go (are all ranks the same program?)";
  if (number == 0 || number == ECONNRESET || number == EPIPE) return who + " has died";
  return text("the connection to ", who, " broke (", error_text(number),
              "): its host or the network has failed");
}

std::vector<Watch::Pid> watchable(std::span<const Process> all, int me) {
  const Process& mine = of(all, me);
  std::vector<Watch::Pid> out;
  for (int r = 0; r < static_cast<int>(all.size()); ++r) {
    const Process& other = of(all, r);
    // Containers of one machine have namespaces of their own: the same pid is another process.
    const bool same_space = mine.pid_space != 0 && other.pid_space == mine.pid_space &&
                            other.pid_space_device == mine.pid_space_device;
    const bool another = other.pid != mine.pid;  // ranks may be threads of one process
    if (another && other.machine == mine.machine && same_space) out.push_back({r, other.pid});
  }
  return out;
}

Neighbours neighbours(std::span<const Process> all, int me) {
  Neighbours out;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const Process& other : all) {
    if (other.machine != of(all, me).machine) continue;
    ++out.ranks;
    CPU_OR(&cores, &cores, &other.cores);
  }
  out.cores = CPU_COUNT(&cores);
  return out;
}

int cores_per_rank(std::span<const Process> all) {
  std::vector<std::string> machines;
  for (const Process& process : all) machines.push_back(text(process.machine));
  std::vector<backend::Seat> seats;
  for (std::size_t i = 0; i < all.size(); ++i) seats.push_back({machines[i], all[i].cores});
  return backend::cores_per_rank(seats);
}

}  // namespace tessera::process
