#include "tessera/comm/backend/call.h"

#include "tessera/base/text.h"

namespace tessera::backend {

namespace {

std::string step_text(std::int64_t step) {
  return step < 0 ? "before the first step" : text("in step ", step);
}

constexpr const char* kOneProgram = "; all ranks must run one program with one configuration";

}  // namespace

std::uint64_t signature(const Collective& c) {
  std::uint64_t h = 0;
  const auto mix = [&](auto value) {
    h = (h ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  };
  mix(static_cast<int>(c.kind) | static_cast<int>(c.dtype) << 8 | static_cast<int>(c.monoid) << 16);
  mix(c.gather), mix(c.scatter), mix(c.peer), mix(c.whole.ndim());
  for (const std::int64_t size : c.whole) mix(size);
  mix(c.rows.choices), mix(c.rows.per_member), mix(c.rows.count);
  return h;
}

std::string to_text(const Seen& seen) {
  std::string out = step_text(seen.step);
  if (seen.group.empty()) {
    out += ", before any call";
  } else {
    out += text(seen.inside ? " at " : " after ", tessera::to_text(seen.kind), " '", seen.name,
                "' (number ", seen.number, " of ", seen.group, ")");
  }
  return seen.ended ? out + ", has ended" : out;
}

std::string here(std::int64_t step, const Collective& c, Number number, const Group& group) {
  return text(step_text(step), " at ", c, " '", c.name, "' (number ", number, " of group ", group,
              ")");
}

std::string to_text(const std::vector<Awaited>& members) {
  std::string late;
  std::vector<int> arrived;
  for (const Awaited& member : members) {
    if (member.arrived) {
      arrived.push_back(member.rank);
    } else {
      late += text(late.empty() ? "not arrived: rank " : ", rank ", member.rank, " (", member.seen,
                   ")");
    }
  }
  return text(late, "; arrived: ", arrived.size() == 1 ? "rank " : "ranks ", join(arrived));
}

std::pair<int, int> who_differs(int n, const std::function<bool(int, int)>& agree) {
  int most = 0, right = 0;
  for (int i = 0; i < n; ++i) {
    int count = 0;
    for (int j = 0; j < n; ++j) count += agree(i, j);
    if (count > most) most = count, right = i;
  }
  int differs = 0;
  while (differs + 1 < n && agree(differs, right)) ++differs;
  return {differs, right};
}

std::string disagreement(const Group& group, Number number, std::string_view name, int differs,
                         const std::string& its, int right, const std::string& others) {
  return text("found that the ranks of group ", group, " call different things as number ", number,
              " (here '", name, "'): rank ", differs, " calls ", its, ", rank ", right, " calls ",
              others, kOneProgram);
}

std::string disagreement(const Group& group, Number number, int from, const std::string& sent,
                         int to, const std::string& received, std::string_view name) {
  return text("found that rank ", from, " sends ", sent, " as number ", number, " of group ", group,
              ", where rank ", to, " receives ", received, " for '", name, "'", kOneProgram);
}

std::string_view first_line(std::string_view words) { return words.substr(0, words.find('\n')); }

}  // namespace tessera::backend
