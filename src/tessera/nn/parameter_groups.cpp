#include "tessera/nn/parameter_groups.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/ir/strategy.h"

namespace tessera {

namespace {

bool is_in(const ParameterGroup& group, std::string_view path) {
  return std::ranges::any_of(group.paths,
                             [&](const std::string& pattern) { return matches(pattern, path); });
}

}  // namespace

std::vector<ParameterGroup> decay_groups(double decay) {
  return {{.paths = {"*"}, .weight_decay = decay},
          {.paths = {"*norm*", "*bias*"}, .weight_decay = 0, .optional = true}};
}

const ParameterGroup* group_of(std::string_view path, const std::vector<ParameterGroup>& groups) {
  const ParameterGroup* out = nullptr;
  for (const ParameterGroup& group : groups) {
    if (is_in(group, path)) out = &group;
  }
  return out;
}

void set_last(std::vector<ParameterGroup>& groups, const ParameterGroup& group) {
  if (groups.empty() || groups.back() != group) groups.push_back(group);
}

void require_matches(const std::vector<ParameterGroup>& groups,
                     const std::vector<std::string>& parameters) {
  for (const ParameterGroup& group : groups) {
    for (const std::string& pattern : group.paths) {
      const bool found =
          group.optional || std::ranges::any_of(parameters, [&](const std::string& path) {
            return matches(pattern, path);
          });
      require(found, "no parameter matches '", pattern, "', which a parameter group names; ",
              found ? "" : near_paths(pattern, parameters), "; '*' stands for any characters");
    }
  }
}

}  // namespace tessera
