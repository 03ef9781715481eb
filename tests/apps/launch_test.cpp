#include "tessera/launch/launch.h"

#include <gtest/gtest.h>

#include "apps/command_test.h"
#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/launch/core_sets.h"

namespace tessera {
namespace {

std::string asked(const std::string& arguments, int cores, bool root = false) {
  return join(mpirun_words(parse_launch(words(arguments), commands_on_ranks()),
                           {"/mpirun", "/tessera", cores, root}),
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
  const Launch launch =
      parse_launch(words("--backend tcp -n 3 -- train --steps 3"), commands_on_ranks());
  EXPECT_EQ(launch.backend, "tcp");
  const Arguments again = tcp_words(launch, {"", "/tessera", 7, false});
  EXPECT_EQ(join(again, " "), "/tessera launch --unsupervised -n 3 --bind core -- train --steps 3");
  const Launch inner = parse_launch({again.begin() + 2, again.end()}, commands_on_ranks());
  EXPECT_TRUE(inner.unsupervised);
  EXPECT_EQ(inner.bind, "core");
  EXPECT_EQ(inner.command, launch.command);
  const auto bind = [](const std::string& flags, int cores) {
    const Launch asked = parse_launch(words(flags + " train"), commands_on_ranks());
    try {
      return tcp_words(asked, {"", "/tessera", cores, false})[6];
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(bind("-n 3", 2), "none");
  EXPECT_EQ(bind("-n 3 --bind none", 7), "none");
  EXPECT_EQ(bind("-n 3 --bind core", 3), "core");
  EXPECT_EQ(bind("-n 3 --bind core", 2),
            "launch: --bind core: there are 3 ranks, but this process may use only 2 cores; leave "
            "it out, or give at most as many ranks as cores");
  EXPECT_EQ(bind("-n 100000", 2),
            "launch: -n 100000: with --backend tcp ranks are processes of this machine, at most "
            "1024; give fewer, or --devices N for ranks that are threads");
}

TEST(Launch, CoresAreSharedOutEvenly) {
  const std::vector<cpu_set_t> cores = usable_core_sets();
  ASSERT_FALSE(cores.empty());
  cpu_set_t all;
  CPU_ZERO(&all);
  int cpus = 0;
  for (const cpu_set_t& core : cores) {
    cpus += CPU_COUNT(&core);
    CPU_OR(&all, &all, &core);
  }
  const cpu_set_t usable = usable_cores();
  EXPECT_TRUE(CPU_EQUAL(&all, &usable));
  EXPECT_EQ(cpus, CPU_COUNT(&usable)) << "no thread of a core belongs to two";
  std::vector<cpu_set_t> seven(7);
  for (unsigned i = 0; i < 7; ++i) {
    CPU_ZERO(&seven[i]);
    CPU_SET(i, &seven[i]), CPU_SET(i + 20, &seven[i]);
  }
  for (int rank = 0; rank < 3; ++rank) {
    const cpu_set_t own = cores_of_rank(seven, rank, 3);
    EXPECT_EQ(CPU_COUNT(&own), 4);
    for (const int cpu : {2 * rank, 2 * rank + 1, 2 * rank + 20, 2 * rank + 21})
      EXPECT_TRUE(CPU_ISSET(static_cast<unsigned>(cpu), &own)) << rank << " " << cpu;
  }
}

TEST(Launch, ShellsTakeTheWordsAsTheyAre) {
  EXPECT_EQ(shell_text({"/a b/tessera", "-n", "2", "--data", "it's", "", "x=1,2"}),
            R"('/a b/tessera' -n 2 --data 'it'\''s' '' x=1,2)");
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

/// Each takes the secret by which they know each other.
TEST(Launch, EveryCommandOfRanks) {
  for (const std::string& name : commands_on_ranks()) {
    EXPECT_EQ(parse_launch({"-n", "2", "--", name}, commands_on_ranks()).command.front(), name);
    std::ostringstream out, err;
    Console console{out, err};
    run_command({name, "--secret-file", "none", "--no-such-flag"}, console);
    EXPECT_NE(err.str().find("--no-such-flag"), std::string::npos) << name << err.str();
    EXPECT_EQ(err.str().find("unknown flag --secret-file"), std::string::npos) << name << err.str();
  }
  EXPECT_EQ(commands_on_ranks().size(), 8u);
}

TEST(Launch, AProgramIsARankByItsPath) {
  const auto find = [](const std::string& name) {
    return name == "python3" ? "/usr/bin/python3" : "";
  };
  const Launch program = parse_launch(words("-n 2 --backend tcp -- python3 a.py --steps 3"),
                                      commands_on_ranks(), find);
  EXPECT_TRUE(program.is_program);
  EXPECT_EQ(join(rank_words(program, "/bin/tessera"), " "), "/usr/bin/python3 a.py --steps 3");
  const Arguments tcp = tcp_words(program, {.mpirun = "", .program = "/bin/tessera", .cores = 1});
  EXPECT_TRUE(join(tcp, " ").ends_with("-- /usr/bin/python3 a.py --steps 3")) << join(tcp, " ");
  const Arguments mpi =
      mpirun_words(program, {.mpirun = "/bin/mpirun", .program = "/bin/tessera", .cores = 1});
  EXPECT_TRUE(join(mpi, " ").ends_with(" /usr/bin/python3 a.py --steps 3")) << join(mpi, " ");
  EXPECT_EQ(join(mpi, " ").find("/bin/tessera"), std::string::npos);
  EXPECT_FALSE(parse_launch(words("-n 2 train"), commands_on_ranks(), find).is_program);
  EXPECT_EQ(join(rank_words(parse_launch(words("-n 2 train"), commands_on_ranks()), "t"), " "),
            "t train");
}

TEST(Launch, WhatIsRefused) {
  struct Case {
    const char *arguments, *message;
  };
  const Case cases[] = {
      {"-- train", "launch: the number of ranks is missing; tessera launch -n 8 -- train ..."},
      {"-n 0 train", "-n: '0' is not a number of ranks; give a whole number of at least 1"},
      {"-n two train", "-n: 'two' is not a number of ranks; give a whole number of at least 1"},
      {"-n", "-n needs a value; see tessera launch --help"},
      {"-n 2", "launch: no command; tessera launch -n 2 -- train ..."},
      {"-n 2 launch -n 2 train",
       "launch: 'launch' does not run on ranks, only train, sample, chat, serve, predict, "
       "evaluate, verify, doctor do, and programs that call Tessera, like python3 train.py; run it "
       "without launch"},
      {"-n 2 inspect runs/first",
       "launch: 'inspect' does not run on ranks, only train, sample, chat, serve, predict, "
       "evaluate, verify, doctor do, and programs that call Tessera, like python3 train.py; run it "
       "without launch"},
      {"-n 2 --backend nccl train", "--backend: 'nccl' is none of auto, mpi, tcp"},
      {"-n 2 --backend tcp --hostfile h train",
       "launch: --backend tcp starts ranks on this machine; leave --hostfile to mpirun, or start "
       "the command on each host with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and with the "
       "same secret (--secret-file FILE), which you can copy with ssh HOST 'umask 077; cat > FILE' "
       "< FILE"},
      {"-n 2 --bind cores train", "--bind: 'cores' is none of auto, core, none"},
      {"-n 2 --hostfiel x train",
       "launch: unknown flag --hostfiel; nearest is --hostfile; flags of the command come after "
       "it: tessera launch -n 8 -- train ..."},
  };
  for (const Case& c : cases) {
    try {
      parse_launch(words(c.arguments), commands_on_ranks());
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
