#include "tessera/launch/agreement.h"

#include <gtest/gtest.h>

#include <regex>
#include <vector>

#include "apps/command_test.h"
#include "tessera/comm/local.h"
#include "tessera/comm/processes.h"
#include "tessera/comm/share_text.h"
#include "tessera/launch/take_machine.h"
#include "tessera/machines/find_machine.h"
#include "tessera/machines/machine_file.h"

namespace tessera {
namespace {

TEST(Agreement, WhatRanksWereAskedDifferentlyIsNamed) {
  struct Case {
    const char* name;
    std::vector<Asked> ranks;
    const char* says;
  };
  const Asked usual = {{"--lr", "0.1"}, {"--seed", "1"}};
  const Case cases[] = {
      {"the same", {usual, usual}, ""},
      {"one flag",
       {usual, {{"--lr", "0.2"}, {"--seed", "1"}}},
       "--lr is 0.1 on rank 0 and 0.2 on rank 1"},
      {"two flags, of two ranks",
       {usual, {{"--lr", "0.2"}, {"--seed", "1"}}, {{"--lr", "0.1"}, {"--seed", "3"}}},
       "--lr is 0.1 on ranks 0, 2 and 0.2 on rank 1; --seed is 1 on ranks 0, 1 and 3 on rank 2"},
      {"many ranks",
       {usual, usual, usual, {{"--lr", ""}, {"--seed", "1"}}, usual},
       "--lr is 0.1 on ranks 0 to 2, 4 and not given on rank 3"},
      {"a flag that one command lacks",
       {usual, {{"--lr", "0.1"}}},
       "--seed is 1 on rank 0 and not given on rank 1"},
      {"a problem of one rank's flags",
       {{{"problems", ""}}, {{"problems", "--lr is 'x'"}}},
       "--lr is 'x' (rank 1)"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(differences(c.ranks), c.says);
  }
}

/// Every field of a configuration is compared, those that no one has thought of yet included.
TEST(Agreement, EveryFlagCounts) {
  const RunConfig config;
  const Asked asked = asked_of("train", config);
  EXPECT_EQ(asked.size(), record_of(config).size() + 1);
  EXPECT_EQ(asked.at("--seed"), "1");
  EXPECT_EQ(asked.at("command"), "train");
}

/// The library is shared, so the program's file says nothing of it.
TEST(Agreement, TheProgramAndItsLibraryCount) {
  const Asked asked = with_program({{"--seed", "1"}}, {});
  EXPECT_EQ(asked.at("program"), program_text());
  const std::string& version = asked.at("oneDNN");
  EXPECT_TRUE(std::regex_match(version, std::regex("[0-9]+\\.[0-9]+\\.[0-9]+ \\(.+\\)")))
      << version;
  Asked other = asked;
  other["oneDNN"] = "2.0.0 (0)";
  EXPECT_EQ(differences(std::vector<Asked>{asked, other}),
            text("oneDNN is ", version, " on rank 0 and 2.0.0 (0) on rank 1"));
}

TEST(Agreement, RanksThatDifferEndAlike) {
  const std::string begin = "the ranks of one run were started differently: ",
                    end = "; start the same program with the same flags on all";
  for (const std::string different : {"", "--seed", "--check"}) {
    std::vector<std::string> seen(3);
    run_ranks(3, [&](Communicator& world) {
      RunConfig config;
      const bool other = world.rank() == 1;
      if (other && different == "--seed") config.seed = 7;
      const Asked own = {{"--check", other && different == "--check" ? "true" : "false"}};
      try {
        require_same(world, asked_of("train", config, own), {});
      } catch (const CommonError& error) {
        EXPECT_EQ(error.fault(), Fault::Usage);
        seen[static_cast<std::size_t>(world.rank())] = error.what();
      }
    });
    for (const std::string& what : seen) {
      EXPECT_EQ(what, different.empty() ? ""
                      : different == "--seed"
                          ? begin + "--seed is 1 on ranks 0, 2 and 7 on rank 1" + end
                          : begin + "--check is false on ranks 0, 2 and true on rank 1" + end);
    }
  }
}

TEST(Agreement, WhatRankZeroFindsAllKnow) {
  run_ranks(3, [](Communicator& world) {
    const auto found = from_leader(&world, [&]() -> std::map<std::string, std::string> {
      EXPECT_EQ(world.rank(), 0);
      return {{"a", "1"}, {"b", ""}};
    });
    EXPECT_EQ(found, (std::map<std::string, std::string>{{"a", "1"}, {"b", ""}}));
    try {
      from_leader(&world,
                  []() -> std::map<std::string, std::string> { fail(Fault::Data, "no text"); });
      ADD_FAILURE() << "nothing failed";
    } catch (const CommonError& error) {
      EXPECT_EQ(error.fault(), Fault::Data);
      EXPECT_EQ(std::string(error.what()), "no text");
    }
  });
}

/// Files may differ, or not be there, on other hosts than that of rank 0.
TEST(Agreement, TheMachineOfRankZeroIsThatOfAll) {
  const Folder folder;
  Machine there = find_machine("h100-256");
  there.name = "there";
  folder.write("there.toml", machine_file_text(there));
  folder.write("other.toml", machine_file_text(find_machine("a100-1024")));
  const std::string files[] = {folder / "there.toml", folder / "other.toml", folder / "none.toml"};
  run_ranks(3, [&](Communicator& world) {
    RunConfig config;
    Problems problems;
    config.machine = files[world.rank()];  // as one name may lead each rank to another file
    take_machine(config, &world, problems);
    EXPECT_EQ(config.parallel.machine, there) << world.rank();
    complete(config);
    find_problems(config, problems);
    EXPECT_TRUE(problems.empty()) << problems.list().front().what();
    EXPECT_EQ(config.parallel.machine, there) << "no file is read again";
    config.machine = files[2 - world.rank()];
    take_machine(config, &world, problems);
    ASSERT_EQ(problems.list().size(), 1u);
    EXPECT_NE(std::string(problems.list()[0].what()).find("none.toml' is neither a known machine"),
              std::string::npos);
  });
}

TEST(Agreement, TextsOfAnyLengthAreShared) {
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * 3001), 'a');
  };
  run_ranks(3, [&](Communicator& world) {
    const std::vector<std::string> all = gather_texts(world, text_of(world.rank()), "texts");
    ASSERT_EQ(all.size(), 3u);
    for (int r = 0; r < 3; ++r) EXPECT_EQ(all[static_cast<std::size_t>(r)], text_of(r));
    EXPECT_EQ(share_text(world, world.rank() == 0 ? "abcde" : "other", "text"), "abcde");
    EXPECT_EQ(share_text(world, "", "nothing"), "");
  });
}

}  // namespace
}  // namespace tessera
