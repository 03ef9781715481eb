#include "tessera/comm/launched.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/process/rank_table.h"
#include "tessera/comm/process/variables.h"

namespace tessera {
namespace {

using Environment = std::map<std::string, std::string>;

Launched launched(const Environment& variables, const LaunchWishes& wishes = {}) {
  return launch_of(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      wishes);
}

/// "tcp 1 of 4, 2 here, at node1:29500"
std::string shown(const Launched& launched) {
  if (launched.how == Launched::Alone) return "alone";
  if (launched.how == Launched::Mpi)
    return text("mpi ", launched.rank, " of ", launched.size,
                launched.sigterm_is_death ? ", SIGTERM is a death" : "");
  return text("tcp ", launched.rank, " of ", launched.size,
              launched.here == 1 ? "" : text(", ", launched.here, " here"), ", at ",
              launched.address, ":", launched.port);
}

Environment with(Environment all, const Environment& more) {
  for (const auto& [name, value] : more) all[name] = value;
  return all;
}

const Environment kTorch = {{"RANK", "1"},
                            {"WORLD_SIZE", "4"},
                            {"LOCAL_RANK", "1"},
                            {"MASTER_ADDR", "node1"},
                            {"MASTER_PORT", "12345"}};
const Environment kMindSpore = {
    {"RANK_ID", "1"}, {"RANK_SIZE", "4"}, {"DEVICE_ID", "1"}, {"MS_SCHED_HOST", "10.0.0.9"}};
const Environment kSlurm = {{"SLURM_PROCID", "5"},
                            {"SLURM_STEP_NUM_TASKS", "8"},
                            {"SLURM_LOCALID", "1"},
                            {"SLURM_JOB_ID", "10007"},
                            {"SLURM_STEP_ID", "2"},
                            {"SLURM_NTASKS", "8"},
                            {"SLURM_STEP_NODELIST", "n[07-08,11]"}};
const Environment kNodes = {{"NNODES", "2"}, {"NODE_RANK", "1"}, {"MASTER_ADDR", "node1"}};

TEST(Launched, AsTheVariablesOfTheProcessSay) {
  struct Row {
    const char* name;
    Environment variables;
    std::string how;
    LaunchWishes wishes = {};
  };
  const LaunchWishes no_mpi = {.devices = 0, .mpi = false};
  const Row rows[] = {
      {"nothing", {}, "alone"},
      {"mpirun of Open MPI",
       {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}},
       "mpi 2 of 4, SIGTERM is a death"},
      {"one rank of it", {{"OMPI_COMM_WORLD_SIZE", "1"}}, "mpi -1 of -1, SIGTERM is a death"},
      {"in a shell of an allocation",
       {{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}},
       "mpi -1 of -1, SIGTERM is a death"},
      {"mpiexec of MPICH", {{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}, "mpi 0 of 2"},
      {"one rank of it", {{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}, "mpi 0 of 1"},
      {"PMIx without a word of the size", {{"PMIX_RANK", "3"}}, "mpi -1 of -1"},
      {"srun --mpi=pmix -n 4",
       {{"PMIX_RANK", "3"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}},
       "mpi 3 of 4"},
      {"srun --mpi=pmix -n 1 --pty bash",
       {{"PMIX_RANK", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},
       "alone"},
      {"the same, and the allocation has more tasks",
       {{"PMIX_RANK", "0"},
        {"SLURM_PROCID", "0"},
        {"SLURM_STEP_NUM_TASKS", "1"},
        {"SLURM_NTASKS", "4"}},
       "alone"},
      {"srun --mpi=pmi2 -n 1 --pty bash",
       {{"PMI_SIZE", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}},
       "alone"},
      {"the script of sbatch --ntasks=4",
       {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_NPROCS", "4"}},
       "alone"},
      {"a plain shell of an allocation", {{"SLURM_NTASKS", "4"}}, "alone"},
      {"torchrun", kTorch, "tcp 1 of 4, at node1:12345"},
      {"without a port", with(kTorch, {{"MASTER_PORT", ""}}), "tcp 1 of 4, at node1:29500"},
      {"one process of torchrun", with(kTorch, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "alone"},
      {"a size of one that a shell inherited", {{"WORLD_SIZE", "1"}}, "alone"},
      {"mpirun that says the same as well",
       with(kTorch, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}}),
       "mpi 1 of 4, SIGTERM is a death"},
      {"PMIx in a job of one process",
       {{"PMIX_RANK", "0"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}},
       "mpi -1 of -1"},
      {"mpirun in a job of one process",
       {{"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_RANK", "1"},
        {"RANK", "0"},
        {"WORLD_SIZE", "1"}},
       "mpi 1 of 4, SIGTERM is a death"},
      {"torchrun in a shell of an allocation",
       with(kTorch, {{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}),
       "tcp 1 of 4, at node1:12345"},
      {"torchrun in a script that has NNODES", with(kTorch, kNodes), "tcp 1 of 4, at node1:12345"},
      {"msrun", kMindSpore, "tcp 1 of 4, at 10.0.0.9:8118"},
      {"msrun with a port", with(kMindSpore, {{"MS_SCHED_PORT", "9000"}}),
       "tcp 1 of 4, at 10.0.0.9:9000"},
      {"MindSpore's ranks at torchrun's address",
       {{"RANK_ID", "1"}, {"RANK_SIZE", "4"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}},
       "tcp 1 of 4, at a:7"},
      {"both, alike", with(kTorch, kMindSpore), "tcp 1 of 4, at node1:12345"},
      {"one process of MindSpore", {{"RANK_ID", "0"}, {"RANK_SIZE", "1"}}, "alone"},
      {"one process a host",
       kNodes,
       "tcp 4 of 8, 4 here, at node1:29500",
       {.devices = 8, .mpi = true}},
      {"one host", with(kNodes, {{"NNODES", "1"}, {"NODE_RANK", "0"}}), "alone"},
      {"srun --mpi=none -n 8", kSlurm, "tcp 5 of 8, at n07:20009"},
      {"a job of a federation of clusters, and a step that srun gives no number",
       with(kSlurm, {{"SLURM_JOB_ID", "4000000123"}, {"SLURM_STEP_ID", "4294967290"}}),
       "tcp 5 of 8, at n07:27413"},
      {"numbers whose sum no int holds",
       with(kSlurm, {{"SLURM_JOB_ID", "2147483647"}, {"SLURM_STEP_ID", "9"}}),
       "tcp 5 of 8, at n07:23656"},
      {"the same, and another address", with(kSlurm, {{"MASTER_ADDR", "x"}, {"MASTER_PORT", "9"}}),
       "tcp 5 of 8, at x:9"},
      {"srun whose plugin speaks to MPI", with(kSlurm, {{"PMI_SIZE", "8"}, {"PMI_RANK", "5"}}),
       "mpi 5 of 8"},
      {"the same, and no MPI is built in", with(kSlurm, {{"PMI_SIZE", "8"}, {"PMI_RANK", "5"}}),
       "tcp 5 of 8, at n07:20009", no_mpi},
      {"mpirun, and no MPI is built in: it says how to get it",
       {{"OMPI_COMM_WORLD_SIZE", "4"}},
       "mpi -1 of -1, SIGTERM is a death",
       no_mpi},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(shown(launched(row.variables, row.wishes)), row.how);
  }
}

/// `tessera launch` says by which it is a rank already.
TEST(Launched, ByWhichVariables) {
  EXPECT_EQ(launched({{"PMIX_RANK", "1"}}).who, "PMIX_RANK");
  EXPECT_EQ(launched({{"OMPI_COMM_WORLD_SIZE", "1"}}).who, "OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(launched({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}).who, "PMI_RANK, PMI_SIZE");
  EXPECT_EQ(launched(kTorch).who, "RANK, WORLD_SIZE");
}

/// `tessera launch` listens for rank 0, which alone has the file.
TEST(Launched, ASocketThatListensAlready) {
  const Environment first = with(kTorch, {{"RANK", "0"}, {"TESSERA_LISTEN_FD", "7"}});
  EXPECT_EQ(launched(first).listener, 7);
  EXPECT_EQ(launched(with(first, {{"RANK", "1"}})).listener, -1);
  EXPECT_EQ(launched(with(first, {{"TESSERA_LISTEN_FD", ""}})).listener, -1);
}

std::string refusal(const Environment& variables, const LaunchWishes& wishes = {}) {
  try {
    return "taken as " + shown(launched(variables, wishes));
  } catch (const Error& e) {
    EXPECT_EQ(e.fault(), Fault::Usage);
    return e.what();
  }
}

TEST(Launched, WhatContradictsItselfIsExplained) {
  struct Row {
    const char* name;
    Environment variables;
    std::string says;
    LaunchWishes wishes = {};
  };
  const std::string unset = "; or unset it, and use --devices N for ranks that are threads";
  const Row rows[] = {
      {"half a pair",
       {{"RANK", "3"}},
       "RANK is '3', but WORLD_SIZE is not set: give both, the rank and the number of ranks" +
           unset},
      {"the other half", {{"WORLD_SIZE", "4"}}, "WORLD_SIZE is '4', but RANK is not set"},
      {"half of MindSpore's", {{"RANK_ID", "3"}}, "RANK_ID is '3', but RANK_SIZE is not set"},
      {"a rank too high", with(kTorch, {{"RANK", "4"}}),
       "RANK is '4', and WORLD_SIZE is '4': ranks count from 0 to 3"},
      {"a rank below 0", with(kTorch, {{"RANK", "-1"}}),
       "RANK is '-1', and must be a whole number"},
      {"no number", with(kTorch, {{"RANK", "x"}}), "RANK is 'x', and must be a whole number"},
      {"no size", with(kTorch, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE is '0', and must be a whole"},
      {"port 0", with(kTorch, {{"MASTER_PORT", "0"}}),
       "MASTER_PORT is '0', and must be a whole number from 1 to 65535"},
      {"port 70000", with(kTorch, {{"MASTER_PORT", "70000"}}),
       "MASTER_PORT is '70000', and must be a whole number from 1 to 65535"},
      {"no address", with(kTorch, {{"MASTER_ADDR", ""}}),
       "RANK, WORLD_SIZE make this rank 1 of 4, but MASTER_ADDR is not set: give all ranks the "
       "name or address of rank 0's host"},
      {"two ranks", with(kTorch, with(kMindSpore, {{"RANK_ID", "2"}})),
       "two ways to start differ: by RANK, WORLD_SIZE this is rank 1 of 4, but by RANK_ID, "
       "RANK_SIZE rank 2 of 4; unset the wrong one"},
      {"another rank under mpirun",
       with(kTorch, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}}),
       "two ways to start differ: by OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE this is rank 2 of "
       "4, but by RANK, WORLD_SIZE rank 1 of 4"},
      {"a rank of MPI that says nothing of how many, left of an earlier job",
       with(kTorch, {{"PMIX_RANK", "0"}}),
       "two ways to start: PMIX_RANK means that MPI started this process, but gives no rank, while "
       "by RANK, WORLD_SIZE it is rank 1 of 4; unset PMIX_RANK if it is left from "
       "another job, or else RANK, WORLD_SIZE"},
      {"the same beside MindSpore's", with(kMindSpore, {{"PMIX_RANK", "0"}}),
       "while by RANK_ID, RANK_SIZE it is rank 1 of 4; unset PMIX_RANK"},
      {"the same, and half a pair",
       {{"PMIX_RANK", "0"}, {"RANK", "1"}},
       "RANK is '1', but WORLD_SIZE is not set"},
      {"another rank of MindSpore under mpirun",
       with(kMindSpore, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}}),
       "this is rank 2 of 4, but by RANK_ID, RANK_SIZE rank 1 of 4"},
      {"hosts, and no word of their devices", kNodes, "NNODES is '2', but --devices is not given"},
      {"devices that hosts cannot share",
       kNodes,
       "--devices is 5, and NNODES is '2'",
       {.devices = 5, .mpi = true}},
      {"a host too many", with(kNodes, {{"NODE_RANK", "2"}}),
       "NODE_RANK is '2', and NNODES is '2': ranks count from 0 to 1"},
      {"a file that is not there",
       {{"RANK_TABLE_FILE", "/nowhere/t.json"}, {"RANK_ID", "0"}},
       "RANK_TABLE_FILE: cannot read '/nowhere/t.json'"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string words = refusal(row.variables, row.wishes);
    EXPECT_NE(words.find(row.says), std::string::npos) << words;
  }
}

/// The table of the first seed, with as many devices on each server as asked.
std::string table(const std::vector<std::string>& servers, int each) {
  std::string out =
      text(R"({"version": "1.0", "server_count": ")", servers.size(), R"(", "server_list": [)");
  int rank = 0;
  for (const std::string& server : servers) {
    out += text(rank == 0 ? "" : ",", R"({"server_id": ")", server, R"(", "device": [)");
    for (int d = 0; d < each; ++d, ++rank)
      out += text(d == 0 ? "" : ",", R"({"device_id": ")", d,
                  R"(","device_ip": "192.1.27.6","rank_id": ")", rank, R"("})");
    out += R"(], "host_nic_ip": "reserve"})";
  }
  return out + R"(], "status": "completed"})";
}

/// A file of this test, removed with it.
class TableFile {
 public:
  explicit TableFile(const std::string& words)
      : path_(
            text(testing::TempDir(), "rank_table_", static_cast<std::int64_t>(getpid()), ".json")) {
    std::ofstream(path_) << words;
  }
  ~TableFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Launched, RankTables) {
  const TableFile one(table({"10.*.*.*"}, 8));
  const Environment rank3 = {
      {"RANK_TABLE_FILE", one.path()}, {"RANK_ID", "3"}, {"DEVICE_ID", "3"}, {"RANK_SIZE", "8"}};
  EXPECT_EQ(shown(launched(rank3)), "tcp 3 of 8, at 127.0.0.1:8118");
  EXPECT_EQ(shown(launched(with(rank3, {{"MASTER_PORT", "77"}}))), "tcp 3 of 8, at 127.0.0.1:77");
  const auto says = [&](const Environment& more, const std::string& words) {
    const std::string all = refusal(with(rank3, more));
    EXPECT_NE(all.find(words), std::string::npos) << all;
  };
  says({{"RANK_ID", ""}}, "but RANK_ID is not set: give the rank of this process among its 8");
  says({{"RANK_ID", "8"}}, "' has the ranks 0 to 7; give a rank of the table, or another table");
  says({{"RANK_SIZE", "2"}}, "RANK_SIZE is '2', but '");
  says({{"DEVICE_ID", "4"}}, "DEVICE_ID is '4', but '");
  says({{"RANK", "2"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "a"}}, "two ways to start differ");
}

TEST(Launched, RankTablesOfSeveralServers) {
  const TableFile two(table({"10.0.0.1", "10.0.0.2"}, 8));
  const Environment rank9 = {{"RANK_TABLE_FILE", two.path()}, {"RANK_ID", "9"}};
  EXPECT_EQ(shown(launched(rank9)), "tcp 9 of 16, at 10.0.0.1:8118");
}

TEST(Launched, AnAddressThatIsNoneIsTold) {
  const TableFile two(table({"10.*.*.*", "10.0.0.2"}, 8));
  const std::string words = refusal({{"RANK_TABLE_FILE", two.path()}, {"RANK_ID", "9"}});
  EXPECT_NE(
      words.find("gives the server of rank 0 the server_id '10.*.*.*', which is not an address"),
      std::string::npos)
      << words;
}

TEST(RankTable, WhatIsWrongIsTold) {
  const std::string good = table({"a"}, 2);
  const auto with_part = [&](const std::string& part, const std::string& other) {
    std::string out = good;
    return out.replace(out.find(part), part.size(), other);
  };
  const std::pair<std::string, std::string> rows[] = {
      {"[", "is not JSON"},
      {"[]", "is not an object {...}"},
      {"{}", "has no list \"server_list\""},
      {with_part("\"completed\"", "\"initializing\""), "has the status 'initializing'"},
      {with_part("\"rank_id\": \"1\"", "\"rank_id\": \"0\""), "has rank 0 twice, on a and a"},
      {with_part("\"rank_id\": \"1\"", "\"rank_id\": \"2\""), "lacks rank 1 of the ranks 0 to 2"},
      {with_part("\"rank_id\": \"1\"", "\"rank_id\": \"-1\""), "has the rank_id '-1'"},
      {with_part("\"rank_id\": \"1\"", "\"rank\": \"1\""), "has a part without \"rank_id\""},
      {with_part("\"server_count\": \"1\"", "\"server_count\": \"2\""),
       "has server_count 2, and server_list has 1; give all servers, and their count"},
      {with_part("\"device\"", "\"devices\""), "has no list \"device\""},
      {R"({"server_list": [{"server_id": "a", "device": []}]})", "has no device"},
  };
  for (const auto& [words, says] : rows) {
    SCOPED_TRACE(words);
    try {
      process::parse_rank_table(words, "t.json");
      ADD_FAILURE() << "was taken";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("RANK_TABLE_FILE: 't.json' " + says), std::string::npos)
          << e.what();
    }
  }
  const process::RankTable numbers = process::parse_rank_table(
      R"({"server_list": [{"server_id": "a", "host_nic_ip": "10.1.1.1", "device": [{"device_id": 3, "rank_id": 0}]}]})",
      "t.json");
  ASSERT_EQ(numbers.ranks.size(), 1u);
  EXPECT_EQ(numbers.ranks[0].server, "10.1.1.1");
  EXPECT_EQ(numbers.ranks[0].device, 3);
}

TEST(NodeList, FirstHost) {
  const std::pair<const char*, const char*> rows[] = {
      {"login", "login"},
      {"a,b", "a"},
      {"n[1-3,7]", "n1"},
      {"n[007-012]", "n007"},
      {"n[3,5]-ib,login", "n3-ib"},
      {"login,n[1-2]", "login"},
      {"rack[2-4]node[10-12],x", "rack2node10"},
  };
  for (const auto& [list, first] : rows) EXPECT_EQ(process::first_host(list), first) << list;
  EXPECT_THROW(process::first_host("n[1-3"), Error);
}

}  // namespace
}  // namespace tessera
