#include "tessera/apps/launch.h"

#include <gtest/gtest.h>

#include "apps/command_test.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

std::string asked(const std::string& arguments, int cores, bool root = false) {
  return join(mpirun_words(parse_launch(words(arguments)), {"/mpirun", "/tessera", cores, root}),
              " ");
}

TEST(Launch, WhatMpirunIsAsked) {
  struct Case {
    const char* name;
    const char* arguments;
    int cores;
    const char* asked;
  };
  const Case cases[] = {
      {"a core for each", "-n 2 -- train --steps 3", 2,
       "/mpirun -n 2 -x TESSERA_STOP_BY_INPUT=1 --map-by slot:PE=1 --bind-to core /tessera train "
       "--steps 3"},
      {"neighbouring cores for each", "--ranks=2 --verbose train -n 7", 5,
       "/mpirun -n 2 -x TESSERA_STOP_BY_INPUT=1 --map-by slot:PE=2 --bind-to core /tessera train "
       "-n 7"},
      {"more ranks than cores", "-n 8 -- train", 2,
       "/mpirun -n 8 -x TESSERA_STOP_BY_INPUT=1 --oversubscribe --mca mpi_yield_when_idle 1 "
       "--bind-to none /tessera "
       "train"},
      {"not bound on request", "-n 2 --bind none -- train", 2,
       "/mpirun -n 2 -x TESSERA_STOP_BY_INPUT=1 --bind-to none /tessera train"},
      {"a flag of ours behind the command is the command's", "-n 2 --bind none train --verbose", 2,
       "/mpirun -n 2 -x TESSERA_STOP_BY_INPUT=1 --bind-to none /tessera train --verbose"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(asked(c.arguments, c.cores), c.asked);
  }
  EXPECT_NE(asked("-n 2 train", 2, true).find(" --allow-run-as-root "), std::string::npos);
}

TEST(Launch, WhatStartsRanksThatJoinOverTcp) {
  const Launch launch = parse_launch(words("--backend tcp -n 3 -- train --steps 3"));
  EXPECT_EQ(launch.backend, "tcp");
  const Arguments again = tcp_words(launch, "/tessera");
  EXPECT_EQ(join(again, " "), "/tessera launch --unsupervised -n 3 -- train --steps 3");
  const Launch inner = parse_launch({again.begin() + 2, again.end()});
  EXPECT_TRUE(inner.unsupervised);
  EXPECT_EQ(inner.command, launch.command);
}

TEST(Launch, HostFilesSayHowManySlotsThereAre) {
  const Folder folder;
  folder.write("two", "a slots=2\n# b slots=9\n\n");
  folder.write("unknown", "a slots=2\nb\n");
  const std::string two = folder / "two", unknown = folder / "unknown";
  EXPECT_EQ(asked("-n 2 --hostfile " + two + " train", 1),
            "/mpirun -n 2 -x TESSERA_STOP_BY_INPUT=1 --hostfile " + two +
                " --bind-to none /tessera train");
  EXPECT_NE(asked("-n 3 --hostfile " + two + " train", 9).find("--oversubscribe"),
            std::string::npos);
  // Where mpirun counts the cores of a host, it knows best.
  EXPECT_EQ(asked("-n 30 --hostfile " + unknown + " train", 1).find("--oversubscribe"),
            std::string::npos);
}

TEST(Launch, WhatIsRefused) {
  struct Case {
    const char *arguments, *message;
  };
  const Case cases[] = {
      {"-- train", "launch: how many ranks? tessera launch -n 8 -- train ..."},
      {"-n 0 train", "-n: '0' is no number of ranks; give a whole number above 0"},
      {"-n two train", "-n: 'two' is no number of ranks; give a whole number above 0"},
      {"-n", "-n needs a value; tessera launch --help says which"},
      {"-n 2", "launch: no command; tessera launch -n 2 -- train ..."},
      {"-n 2 launch -n 2 train",
       "launch: 'launch' is no command that runs on ranks; train, verify and sample are; give any "
       "other one by itself"},
      {"-n 2 inspect runs/first",
       "launch: 'inspect' is no command that runs on ranks; train, verify and sample are; give any "
       "other one by itself"},
      {"-n 2 --backend nccl train", "--backend: 'nccl' is none of auto, mpi, tcp"},
      {"-n 2 --backend tcp --hostfile h train",
       "launch: --backend tcp starts ranks on this machine; leave --hostfile to mpirun, or start "
       "the command on each host with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"},
      {"-n 2 --bind cores train", "--bind: 'cores' is none of auto, core, none"},
      {"-n 2 --hostfiel x train",
       "launch: unknown flag --hostfiel; nearest is --hostfile; flags of the command come after "
       "it: tessera launch -n 8 -- train ..."},
  };
  for (const Case& c : cases) {
    try {
      parse_launch(words(c.arguments));
      ADD_FAILURE() << c.arguments;
    } catch (const Error& e) {
      EXPECT_EQ(e.what(), std::string(c.message));
      EXPECT_EQ(e.fault(), Fault::Usage);
    }
  }
  EXPECT_THROW(asked("-n 2 --hostfile /no/such/file train", 2), Error);
}

}  // namespace
}  // namespace tessera
