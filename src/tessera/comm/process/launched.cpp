#include "tessera/comm/launched.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/comm/process/rank_table.h"
#include "tessera/comm/process/variables.h"

namespace tessera {

namespace {

using process::RankTable;
using process::Variables;

constexpr int kMostProcesses = 1 << 20, kHighestPort = 65535, kHighestFile = 1 << 20;

/// Ports of launchers that leave it to us.
constexpr int kTorchPort = 29500, kMindSporePort = 8118;  // torchrun's and msrun's own
/// Slurm gives no port: jobs of one host get different ones.
constexpr int kFirstSlurmPort = 20000, kSlurmPorts = 10000;

constexpr const char* kUnset = "; or unset it, and use --devices N for ranks that are threads";

bool started_by_mpi(const Variables& v) {
  if (v.has("OMPI_COMM_WORLD_SIZE") || v.has("MV2_COMM_WORLD_SIZE") || v.about("PMI_SIZE") > 1)
    return true;
  // Slurm says much of this to a plain shell and to a batch script as well: there a program is a
  // rank only where its step has several tasks, and MPI's business where it has a protocol of MPI.
  const bool protocol = v.has("PMI_SIZE") || v.has("PMIX_RANK") || v.has("PMI_RANK");
  if (!v.has("SLURM_PROCID")) return v.has("PMI_SIZE") || v.has("PMIX_RANK");
  return protocol && v.about("SLURM_STEP_NUM_TASKS") > 1;
}

/// Rank and size as an MPI launcher tells them, which not all do.
Launched of_mpi(const Variables& v) {
  Launched out;
  out.how = Launched::Mpi;
  out.sigterm_is_death = v.has("OMPI_COMM_WORLD_SIZE");
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& [rank, size] : kNames) {
    if (!v.has(rank) || !v.has(size)) continue;
    out.rank = v.about(rank), out.size = v.about(size);
    out.who = text(rank, ", ", size);
    return out;
  }
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (out.who.empty() && v.has(name)) out.who = name;
  return out;
}

/// A rank and a size that belong together; nothing where they say that there is one rank.
std::optional<Launched> pair(const Variables& v, const char* rank, const char* size) {
  if (!v.has(rank) && !v.has(size)) return std::nullopt;
  const std::optional<int> count = v.number(size, 1, kMostProcesses);
  if (count == 1) return std::nullopt;  // what a shell inherits from a job of its own
  const char *there = count ? size : rank, *missing = count ? rank : size;
  require(v.has(rank) && count, v.shown(there), ", but ", missing,
          " is not set: give both, the rank and the number of ranks", kUnset);
  Launched out;
  out.how = Launched::Tcp;
  out.size = *count;
  require(v.about(rank) < out.size, v.shown(rank), ", and ", v.shown(size),
          ": ranks count from 0 to ", out.size - 1);
  out.rank = *v.number(rank, 0, out.size - 1);
  out.who = text(rank, ", ", size);
  return out;
}

/// Where rank 0 listens: by the first of the names that is set, else as given.
void set_where(Launched& out, const Variables& v, const char* address, const char* port,
               const std::string& usual_address, int usual_port) {
  out.address = v.has(address) ? trim(v.text_of(address)) : usual_address;
  require(!out.address.empty(), out.who, " make this rank ", out.rank, " of ", out.size, ", but ",
          address, " is not set: give all ranks the name or address of rank 0's host");
  out.port = v.number(port, 1, kHighestPort).value_or(usual_port);
  out.where = text(address, ", ", port);
}

std::optional<Launched> of_torch(const Variables& v) {
  // One process a host: some launchers give the number of hosts by this name.
  if (v.has("NNODES") && v.has("NODE_RANK") && !v.has("RANK")) return std::nullopt;
  std::optional<Launched> out = pair(v, "RANK", "WORLD_SIZE");
  if (!out) return out;
  set_where(*out, v, "MASTER_ADDR", "MASTER_PORT", "", kTorchPort);
  if (out->rank == 0) out->listener = v.number("TESSERA_LISTEN_FD", 0, kHighestFile).value_or(-1);
  out->run = v.text_of("TORCHELASTIC_RUN_ID");
  if (v.text_of("TORCHELASTIC_USE_AGENT_STORE") == "True") {
    out->port += out->port < kHighestPort ? 1 : -1;
    out->where = "MASTER_ADDR and the port beside MASTER_PORT, where torchrun listens itself";
  }
  return out;
}

std::string table_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream out;
  require(file.good() && out << file.rdbuf(), "RANK_TABLE_FILE: cannot read '", path,
          "'; give the path of a rank table, relative to the folder of the process");
  return out.str();
}

Launched of_table(const Variables& v) {
  const std::string path = v.text_of("RANK_TABLE_FILE");
  const RankTable table = process::parse_rank_table(table_text(path), path);
  Launched out;
  out.size = static_cast<int>(table.ranks.size());
  require(v.has("RANK_ID"), v.shown("RANK_TABLE_FILE"),
          ", but RANK_ID is not set: give the rank of this process among its ", out.size, kUnset);
  require(v.about("RANK_ID") < out.size, v.shown("RANK_ID"), ", but '", path,
          "' has the ranks 0 to ", out.size - 1, "; give a rank of the table, or another table");
  out.rank = *v.number("RANK_ID", 0, out.size - 1);
  const std::optional<int> size = v.number("RANK_SIZE", 1, kMostProcesses);
  require(!size || *size == out.size, v.shown("RANK_SIZE"), ", but '", path, "' has ", out.size,
          " ranks; give the same number, or another table");
  const RankTable::Rank& mine = table.ranks[static_cast<std::size_t>(out.rank)];
  const std::optional<int> device = v.number("DEVICE_ID", 0, kMostProcesses);
  require(!device || *device == mine.device, v.shown("DEVICE_ID"), ", but '", path, "' gives rank ",
          out.rank, " the device ", mine.device,
          "; give each process the RANK_ID and the DEVICE_ID of one line");
  if (out.size == 1) return {};
  out.how = Launched::Tcp;
  out.who = "RANK_TABLE_FILE, RANK_ID";
  // On one server every rank is here, whatever its name.
  const std::string& server = table.ranks.front().server;
  set_where(out, v, "MASTER_ADDR", "MASTER_PORT", table.servers == 1 ? "127.0.0.1" : server,
            kMindSporePort);
  require(out.address.find('*') == std::string::npos, "RANK_TABLE_FILE: '", path,
          "' gives the server of rank 0 the server_id '", server,
          "', which is not an address; write the name or address of its host, or set MASTER_ADDR");
  if (!v.has("MASTER_ADDR")) out.where = "of the rank table; MASTER_PORT, or else 8118";
  return out;
}

std::optional<Launched> of_mindspore(const Variables& v) {
  if (v.has("RANK_TABLE_FILE")) {
    const Launched out = of_table(v);
    return out.how == Launched::Tcp ? std::optional(out) : std::nullopt;
  }
  std::optional<Launched> out = pair(v, "RANK_ID", "RANK_SIZE");
  if (!out) return out;
  if (v.has("MS_SCHED_HOST")) {
    set_where(*out, v, "MS_SCHED_HOST", "MS_SCHED_PORT", "", kMindSporePort);
  } else {
    set_where(*out, v, "MASTER_ADDR", "MASTER_PORT", "", kMindSporePort);
  }
  return out;
}

/// One process a host, whose threads are its devices.
std::optional<Launched> of_nodes(const Variables& v, const LaunchWishes& wishes) {
  std::optional<Launched> node = pair(v, "NODE_RANK", "NNODES");
  if (!node) return node;
  const std::int64_t hosts = node->size;
  require(wishes.devices > 0, v.shown("NNODES"),
          ", but --devices is not given: give the devices of all hosts together; each process runs "
          "its share of them as threads");
  require(wishes.devices % hosts == 0, "--devices is ", wishes.devices, ", and ", v.shown("NNODES"),
          ": all hosts must have the same number of devices; give a multiple of ", hosts);
  Launched out = *node;
  out.here = static_cast<int>(wishes.devices / hosts);
  out.size = static_cast<int>(wishes.devices);
  out.rank = node->rank * out.here;
  set_where(out, v, "MASTER_ADDR", "MASTER_PORT", "", kTorchPort);
  return out;
}

std::optional<Launched> of_slurm(const Variables& v) {
  if (v.about("SLURM_STEP_NUM_TASKS") <= 1 || !v.has("SLURM_PROCID")) return std::nullopt;
  std::optional<Launched> out = pair(v, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (!out) return out;
  out->run = text(v.text_of("SLURM_JOB_ID"), ".", v.text_of("SLURM_STEP_ID"));
  const char* list = v.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  const int port = kFirstSlurmPort + (v.remainder("SLURM_JOB_ID", kSlurmPorts) +
                                      v.remainder("SLURM_STEP_ID", kSlurmPorts)) %
                                         kSlurmPorts;
  set_where(*out, v, "MASTER_ADDR", "MASTER_PORT",
            v.has(list) ? process::first_host(v.text_of(list)) : "", port);
  if (!v.has("MASTER_ADDR"))
    out->where = text("first of ", list, "; MASTER_PORT, or else by the job");
  return out;
}

/// Two ways that both say that there are several ranks say the same, or nobody knows which holds.
/// MPI's may say nothing of how many, as a PMIX_RANK that a shell has left of an earlier job: by
/// itself that is one rank alone.
void require_agreement(const Launched& a, const Launched& b) {
  if (a.rank == b.rank && a.size == b.size) return;
  if (a.rank < 0)
    fail(Fault::Usage, "two ways to start: ", a.who, " means that MPI started this process, ",
         "but gives no rank, while by ", b.who, " it is rank ", b.rank, " of ", b.size, "; unset ",
         a.who, " if it is left from another job, or else ", b.who);
  fail(Fault::Usage, "two ways to start differ: by ", a.who, " this is rank ", a.rank, " of ",
       a.size, ", but by ", b.who, " rank ", b.rank, " of ", b.size, "; unset the wrong one");
}

Launched over_tcp(const Variables& v, const LaunchWishes& wishes) {
  const std::optional<Launched> torch = of_torch(v), mindspore = of_mindspore(v);
  if (torch && mindspore) require_agreement(*torch, *mindspore);
  if (torch) return *torch;
  if (mindspore) return *mindspore;
  if (const auto nodes = of_nodes(v, wishes)) return *nodes;
  return of_slurm(v).value_or(Launched{});
}

}  // namespace

Launched launch_of(const std::function<const char*(const char* name)>& variable,
                   const LaunchWishes& wishes) {
  const Variables v(variable);
  const bool mpi = started_by_mpi(v);
  // srun says more than MPI needs; the program may have been built without MPI.
  const bool slurm = v.about("SLURM_STEP_NUM_TASKS") > 1 && !v.has("OMPI_COMM_WORLD_SIZE");
  if (mpi && (wishes.mpi || !slurm)) {
    const Launched out = of_mpi(v);
    if (const auto torch = pair(v, "RANK", "WORLD_SIZE")) require_agreement(out, *torch);
    if (v.has("RANK_ID") && v.has("RANK_SIZE"))
      if (const auto mindspore = pair(v, "RANK_ID", "RANK_SIZE"))
        require_agreement(out, *mindspore);
    return out;
  }
  Launched out = over_tcp(v, wishes);
  out.secret = v.text_of("TESSERA_SECRET");
  return out;
}

}  // namespace tessera
