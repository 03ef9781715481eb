/// MindSpore's rank tables.

#include "tessera/comm/process/rank_table.h"
#include "fuzz/target.h"

namespace tessera::fuzz {

namespace {

void run(std::string_view input) {
  const process::RankTable table = process::parse_rank_table(input, "input");
  then([&] {
    check(!table.ranks.empty() && table.servers >= 1, "a table of nothing");
    for (const process::RankTable::Rank& rank : table.ranks)
      check(rank.device >= 0, "a rank at ", rank.device);
  });
}

}  // namespace

const Target kTarget = {1 << 20, 256, run};

}  // namespace tessera::fuzz
