#pragma once
/// Names that people type who know other trainers, and what is meant by them here.

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// "here it is --lr", "nearest are --steps and --seed"; empty where nothing is near. `name` is an
/// unknown one, `known` are those that there are; _ reads as -. `prefix` is put before names.
std::string hint(std::string_view name, const std::vector<std::string>& known,
                 std::string_view prefix = "");

/// A name that is known elsewhere, and the flag that is meant; empty: there is none.
struct KnownHint {
  std::string_view name, meant;
};
std::vector<KnownHint> known_hints();

}  // namespace tessera
