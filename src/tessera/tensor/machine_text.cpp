/// A machine in one line.

#include <charconv>
#include <cmath>

#include "tessera/base/error.h"
#include "tessera/tensor/machine.h"

namespace tessera {

namespace {

/// The number before `unit`, which ends `word`; not a number if there is none.
double number_before(std::string_view word, std::string_view unit) {
  if (word.size() <= unit.size() || word.substr(word.size() - unit.size()) != unit) return NAN;
  word.remove_suffix(unit.size());
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? value : NAN;
}

/// One word of the line: "core=15GB/s+1us".
struct Word {
  std::string_view line, word, key, value;

  template <typename... Parts>
  void must(bool ok, const Parts&... parts) const {
    require(ok, "machine '", line, "': ", parts...);
  }
  double speed(std::string_view number, std::string_view unit) const {
    const double out = number_before(number, unit);
    must(std::isfinite(out) && out > 0, "the speed in '", word, "' is not a positive number of ",
         unit);
    return out;
  }
  /// "15GB/s+1us"
  void link(double& gigabytes_per_s, double& microseconds) const {
    const std::size_t plus = value.rfind("s+");
    must(plus != std::string_view::npos, "'", word, "' is not like core=15GB/s+1us");
    gigabytes_per_s = speed(value.substr(0, plus + 1), "GB/s");
    microseconds = number_before(value.substr(plus + 2), "us");
    must(std::isfinite(microseconds) && microseconds >= 0, "the latency in '", word,
         "' is not a number of us, 0 or more");
  }
};

void read(const Word& word, Machine& out) {
  DeviceSpeed& device = out.device;
  if (word.key == "compute") {
    device.other_gigaflops_per_s = word.speed(word.value, "GFLOP/s");
    for (FloatSpeed* product : {&device.f32, &device.bf16, &device.f16})
      product->gigaflops_per_s = device.other_gigaflops_per_s;
  } else if (word.key == "memory") {
    device.memory_gigabytes_per_s = word.speed(word.value, "GB/s");
  } else if (word.key == "copy") {
    word.link(out.memory.gigabytes_per_s, out.memory.microseconds);
  } else {
    for (const MachineLevel& row : machine_levels()) {
      LinkSpeed& link = out.*row.link;
      if (row.name == word.key) return word.link(link.gigabytes_per_s, link.microseconds);
    }
    word.must(false, "unknown level '", word.key, "'; levels are core, socket, host and rack, ",
              "and there are copy, compute and memory");
  }
}

}  // namespace

Machine parse_machine(std::string_view line) {
  Machine out;
  for (const std::string& part : split(line, ' ')) {
    const std::string_view word = trim(part);
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    require(equals != std::string_view::npos, "machine '", line, "': '", word,
            "' is not like core=15GB/s+1us");
    read({line, word, word.substr(0, equals), word.substr(equals + 1)}, out);
  }
  return out;
}

}  // namespace tessera
