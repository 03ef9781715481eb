#pragma once
/// A machine in one line, for tests.

#include <charconv>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/tensor/machine.h"

namespace tessera {

/// "15GB/s" with the unit GB/s is 15.
inline double number_before(std::string_view text, std::string_view unit) {
  double out = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, out);
  require(read.ec == std::errc() && std::string_view(read.ptr, end) == unit, "'", text,
          "' is no number of ", unit);
  return out;
}

/// The defaults, but for what a line names: "core=15GB/s+1us socket=10GB/s+2us host=10GB/s+5us
/// rack=5GB/s+20us copy=10GB/s+5us compute=100GFLOP/s memory=20GB/s".
inline Machine parse_machine(std::string_view line) {
  Machine out;
  DeviceSpeed& device = out.device;
  for (const std::string& word : split(line, ' ')) {
    if (word.empty()) continue;
    const std::size_t equals = word.find('='), plus = word.rfind("s+");
    require(equals != std::string::npos, "'", word, "' is not like core=15GB/s+1us");
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "compute") {
      device.other_gigaflops_per_s = number_before(value, "GFLOP/s");
      for (FloatSpeed* product : {&device.f32, &device.bf16, &device.f16})
        product->gigaflops_per_s = device.other_gigaflops_per_s;
      continue;
    }
    if (key == "memory") {
      device.memory_gigabytes_per_s = number_before(value, "GB/s");
      continue;
    }
    require(plus != std::string::npos, "'", word, "' is not like core=15GB/s+1us");
    const double speed = number_before(word.substr(equals + 1, plus - equals), "GB/s"),
                 latency = number_before(word.substr(plus + 2), "us");
    bool known = key == "copy";
    if (known) out.memory.gigabytes_per_s = speed, out.memory.microseconds = latency;
    for (const MachineLevel& row : machine_levels()) {
      if (row.name != key) continue;
      (out.*row.link).gigabytes_per_s = speed, (out.*row.link).microseconds = latency;
      known = true;
    }
    require(known, "'", key, "' is no level of a machine");
  }
  return out;
}

}  // namespace tessera
