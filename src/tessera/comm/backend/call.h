#pragma once
/// Calls of ranks as others see them: what must agree, where each is, and the words for it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/comm/collective.h"
#include "tessera/comm/group.h"

namespace tessera::backend {

using Number = std::uint64_t;  // of a call of one group: 1, 2, ...

/// A hash of all that the ranks must agree on.
std::uint64_t signature(const Collective& c);

/// Where a rank is, as far as another one knows.
struct Seen {
  std::int64_t step = -1;  // -1: before the first
  std::string group;       // empty: no call yet
  CollectiveKind kind{};
  Number number = 0;
  bool inside = false, ended = false;
  std::string name;
};
/// "in step 3 at all_reduce 'grads' (number 5 of dp)"
std::string to_text(const Seen& seen);

/// "in step 3 at all_reduce sum f32[8] 'grads' (number 5 of group dp (ranks 0, 2))"
std::string here(std::int64_t step, const Collective& c, Number number, const Group& group);

/// "not arrived: rank 2 (in step 3 after ...); arrived: ranks 0, 1"
struct Awaited {
  int rank;
  bool arrived;
  Seen seen;
};
std::string to_text(const std::vector<Awaited>& members);

/// Of n > 1 members that do not all agree: one that differs, and one with whom most agree.
std::pair<int, int> who_differs(int n, const std::function<bool(int, int)>& agree);

/// The words for it: two ranks and their calls.
std::string disagreement(const Group& group, Number number, std::string_view name, int differs,
                         const std::string& its, int right, const std::string& others);
/// And where the message of one rank is not what the other receives.
std::string disagreement(const Group& group, Number number, int from, const std::string& sent,
                         int to, const std::string& received, std::string_view name);

std::string_view first_line(std::string_view words);

}  // namespace tessera::backend
