#pragma once
/// What communicators counted, beside what a plan says.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tessera/models/parallel.h"
#include "tessera/plan/traffic.h"

namespace tessera {

/// Of rows of experts a plan has the most, and a step sends those that are read.
inline void expect_sent(std::map<std::string, Counts> sent,
                        const std::map<std::string, Counts>& planned, int rank) {
  for (auto& [axes, counts] : sent) {
    const auto most = planned.find(axes);
    if (axes != kExpertAxis || most == planned.end()) continue;
    for (const CollectiveKind kind : {CollectiveKind::AllGather, CollectiveKind::ReduceScatter}) {
      const auto k = static_cast<std::size_t>(kind);
      EXPECT_LE(counts[k].bytes, most->second[k].bytes) << "rank " << rank;
      counts[k].bytes = most->second[k].bytes;
    }
  }
  EXPECT_EQ(sent, planned) << "rank " << rank;
}

}  // namespace tessera
