#include "tessera/machines/machine_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <variant>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/toml/parse_toml.h"
#include "tessera/base/toml_string.h"

namespace tessera {

namespace {

struct Unit {
  std::string_view name;
  double size = 1;
};
/// The first is that in which a machine counts.
constexpr std::array kSpeeds = {Unit{"GB/s", 1}, Unit{"MB/s", 1e-3}, Unit{"TB/s", 1e3},
                                Unit{"Gb/s", 0.125}};
constexpr std::array kTimes = {Unit{"us", 1}, Unit{"ns", 1e-3}, Unit{"ms", 1e3}};
constexpr std::array kRates = {Unit{"GFLOP/s", 1}, Unit{"TFLOP/s", 1e3}, Unit{"PFLOP/s", 1e6}};
constexpr std::array kSizes = {Unit{"B", 1},       Unit{"MB", 1e6},     Unit{"GB", 1e9},
                               Unit{"TB", 1e12},   Unit{"MiB", 0x1p20}, Unit{"GiB", 0x1p30},
                               Unit{"TiB", 0x1p40}};
constexpr std::array<std::string_view, 2> kKernelSources = {"cpu", "described"};

/// One key of a file, and where its value lies in a machine.
struct Key {
  std::string path;
  std::variant<double*, std::int64_t*, bool*, std::string*, KernelSource*> slot;
  std::span<const Unit> units = {};  // empty: a number without one
  double low = 0;                    // least value
  std::string_view example;
  bool required = true;
};

/// What no machine is slower, faster or later than; in the first of the units.
constexpr double kSlowest = 1e-6;
constexpr double kHighest = 1e15, kLatest = 1e9;

void add_floats(std::vector<Key>& out, const std::string& path, FloatSpeed& floats, bool required) {
  out.push_back(
      {path + ".peak", &floats.gigaflops_per_s, kRates, kSlowest, "\"100 TFLOP/s\"", required});
  out.push_back({path + ".half_m", &floats.half_m, {}, 0, "256", false});
  out.push_back({path + ".half_n", &floats.half_n, {}, 0, "256", false});
  out.push_back({path + ".half_k", &floats.half_k, {}, 0, "256", false});
  out.push_back({path + ".attention", &floats.attention, {}, kSlowest, "1", false});
  out.push_back({path + ".others", &floats.others, {}, kSlowest, "1", false});
}

/// In the order of a file.
std::vector<Key> keys_of(Machine& m) {
  std::vector<Key> out;
  out.push_back({"name", &m.name, {}, 0, "\"lab\""});
  out.push_back({"kernels", &m.kernels, {}, 0, "\"described\""});
  out.push_back({"known_error", &m.known_error, {}, 0, "\"5 % on average\"", false});
  for (const MachineLevel& level : machine_levels()) {
    LinkSpeed& link = m.*level.link;
    const std::string path = text("links.", level.name, ".");
    out.push_back({path + "bandwidth", &link.gigabytes_per_s, kSpeeds, kSlowest, "\"100 Gb/s\""});
    out.push_back({path + "latency", &link.microseconds, kTimes, 0, "\"5 us\""});
    out.push_back({path + "units", &link.units, {}, 0, "8"});
    out.push_back({path + "sharing", &link.sharing, {}, 1, "1", false});
  }
  DeviceSpeed& device = m.device;
  out.push_back({"device.memory", &device.memory_bytes, kSizes, 1, "\"32 GiB\"", false});
  out.push_back({"device.memory_bandwidth", &device.memory_gigabytes_per_s, kSpeeds, kSlowest,
                 "\"1200 GB/s\""});
  out.push_back({"device.kernel_start", &device.start_microseconds, kTimes, 0, "\"4 us\""});
  out.push_back({"device.other_arithmetic", &device.other_gigaflops_per_s, kRates, kSlowest,
                 "\"4 TFLOP/s\""});
  out.push_back({"device.sharing", &device.sharing, {}, 1, "1", false});
  out.push_back({"device.overlap", &device.overlap, {}, 0, "true"});
  add_floats(out, "device.f32", device.f32, true);
  add_floats(out, "device.bf16", device.bf16, true);
  add_floats(out, "device.f16", device.f16, true);
  out.push_back({"host.memory", &m.memory.memory_bytes, kSizes, 1, "\"96 GB\"", false});
  out.push_back({"host.bandwidth", &m.memory.gigabytes_per_s, kSpeeds, kSlowest, "\"32 GB/s\""});
  out.push_back({"host.latency", &m.memory.microseconds, kTimes, 0, "\"10 us\""});
  out.push_back({"weights.alpha", &m.weights.alpha, {}, 0, "1", false});
  out.push_back({"weights.beta1", &m.weights.beta1, {}, 0, "1", false});
  out.push_back({"weights.beta2", &m.weights.beta2, {}, 0, "1", false});
  out.push_back({"weights.gamma", &m.weights.gamma, {}, 0, "1", false});
  return out;
}

std::string value_text(const toml::node& node) {
  if (const auto* value = node.as_string()) return toml_string(value->get());
  if (const auto* value = node.as_integer()) return number_text(value->get());
  if (const auto* value = node.as_floating_point()) {
    const std::string number = number_text(value->get());
    const bool whole = number.find_first_not_of("-0123456789") == std::string::npos;
    return whole ? number + ".0" : number;  // as it is written, to tell it from a whole number
  }
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  return node.is_array() ? "a list" : node.is_table() ? "a table" : "a date";
}

std::string names_of(std::span<const Unit> units) {
  std::vector<std::string> out;
  for (const Unit& unit : units) out.emplace_back(unit.name);
  return join(out);
}

/// "90 GB/s" in the first of the units; not a number where it is no number of one of them.
double quantity(std::string_view value, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc()) return NAN;
  const std::string_view name = trim(value.substr(static_cast<std::size_t>(end - value.data())));
  for (const Unit& unit : units) {
    if (unit.name == name) return number * unit.size;
  }
  return NAN;
}

/// What is wrong with a file, all of it.
class FileReader {
 public:
  explicit FileReader(const std::string& path) : path_(path) {}

  Machine read(const toml::table& table) {
    Machine out;
    keys_ = keys_of(out);
    given_.assign(keys_.size(), false);
    read_table(table, "");
    find_missing();
    if (problems_.empty()) find_nonsense(out);
    require(problems_.empty(), join(problems_, "\n"));
    return out;
  }

 private:
  void read_table(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) {
      const std::string key = text(prefix, name.str());
      const auto line = static_cast<std::int64_t>(node.source().begin.line);
      const auto found = std::ranges::find(keys_, key, &Key::path);
      if (found != keys_.end()) {
        given_[static_cast<std::size_t>(found - keys_.begin())] = true;
        read_value(*found, node, line);
      } else if (node.is_table() && !below(key + ".").empty()) {
        read_table(*node.as_table(), key + ".");
      } else {
        problem(
            line, "unknown ", node.is_table() ? "table " : "key ", key, "; ",
            prefix.empty() ? "known here" : text("known in ", prefix.substr(0, prefix.size() - 1)),
            " are ", join(below(prefix)));
      }
    }
  }

  /// The next words of the keys that begin so.
  std::vector<std::string> below(const std::string& prefix) const {
    std::vector<std::string> out;
    for (const Key& key : keys_) {
      if (!key.path.starts_with(prefix)) continue;
      std::string word = key.path.substr(prefix.size());
      word = word.substr(0, word.find('.'));
      if (out.empty() || out.back() != word) out.push_back(word);
    }
    return out;
  }

  void read_value(const Key& key, const toml::node& node, std::int64_t line) {
    if (auto* const* name = std::get_if<std::string*>(&key.slot)) {
      const auto* value = node.as_string();
      if (value == nullptr || value->get() != machine_name_text(value->get()))
        return wrong(key, node, line, "a text in quotes, on one line");
      **name = value->get();
    } else if (auto* const* flag = std::get_if<bool*>(&key.slot)) {
      if (!node.is_boolean()) return wrong(key, node, line, "true or false");
      **flag = node.as_boolean()->get();
    } else if (auto* const* source = std::get_if<KernelSource*>(&key.slot)) {
      const auto* value = node.as_string();
      const auto found = std::ranges::find(kKernelSources, value ? value->get() : "");
      if (found == kKernelSources.end()) return wrong(key, node, line, "\"cpu\" or \"described\"");
      **source = static_cast<KernelSource>(found - kKernelSources.begin());
    } else {
      read_number(key, node, line);
    }
  }

  void read_number(const Key& key, const toml::node& node, std::int64_t line) {
    auto* const* whole = std::get_if<std::int64_t*>(&key.slot);
    double number = NAN;
    if (!key.units.empty()) {
      if (node.is_string()) number = quantity(node.as_string()->get(), key.units);
    } else if (node.is_integer()) {
      number = static_cast<double>(node.as_integer()->get());
    } else if (node.is_floating_point() && whole == nullptr) {
      number = node.as_floating_point()->get();
    }
    if (!std::isfinite(number) || number < key.low || number > highest(key)) {
      const std::string range = range_of(key, number);
      return wrong(key, node, line,
                   key.units.empty()
                       ? text(whole != nullptr ? "a whole number, " : "a number, ", range)
                       : text("a number ", range, " with one of the units ", names_of(key.units)));
    }
    if (whole != nullptr) {
      **whole = static_cast<std::int64_t>(std::llround(number));
    } else {
      *std::get<double*>(key.slot) = number;
    }
  }

  static double highest(const Key& key) {
    return key.units.data() == kTimes.data() ? kLatest : kHighest;
  }

  /// "of at most 1e+15 GB/s": what `number` is not, in the first of the units where there are some.
  static std::string range_of(const Key& key, double number) {
    const std::string unit = key.units.empty() ? "" : text(" ", key.units[0].name);
    if (number > highest(key)) return text("of at most ", number_text(highest(key)), unit);
    if (key.low == kSlowest)
      return number > 0 ? text("of at least ", number_text(kSlowest), unit) : "above 0";
    return text(key.low, key.low > 0 ? unit : "", " or more");
  }

  void find_missing() {
    std::string table;  // that is told to be missing already
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::string& key = keys_[i].path;
      if (!keys_[i].required || given_[i]) continue;
      const std::size_t dot = key.rfind('.');
      const std::string of = dot == std::string::npos ? "" : key.substr(0, dot + 1);
      if (!of.empty() && of == table) continue;
      const bool whole = !of.empty() && of != "device." && nothing_of(of);
      if (whole) table = of;
      problems_.push_back(
          whole
              ? text(path_, ": table [", of.substr(0, of.size() - 1), "] is missing; give its ",
                     join(below(of)),
                     of.starts_with("links.") ? ", with units = 1 if the machine has no such level"
                                              : "")
              : text(path_, ": ", key, " is missing; give it, as ", key, " = ", keys_[i].example));
    }
  }
  bool nothing_of(const std::string& prefix) const {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (given_[i] && keys_[i].path.starts_with(prefix)) return false;
    }
    return true;
  }

  /// Values that do not go together.
  void find_nonsense(const Machine& m) {
    std::int64_t below = 1;  // devices of a unit of the level below
    std::string_view inner = "a device";
    for (const MachineLevel& level : machine_levels()) {
      const LinkSpeed& link = m.*level.link;
      if (below > 0 && link.sharing > below)
        problems_.push_back(text(path_, ": links.", level.name, ".sharing is ", link.sharing,
                                 ", and ", inner, " has ", below, "; give ", below, " or fewer"));
      if (below > kMostDevices / std::max<std::int64_t>(link.units, 1)) {
        problems_.push_back(text(path_, ": with links.", level.name, ".units ", link.units,
                                 " the machine has more than ", kMostDevices,
                                 " devices; lower the units of its levels"));
        return;
      }
      below *= link.units;
      inner = level.name;
    }
  }

  void wrong(const Key& key, const toml::node& node, std::int64_t line, const std::string& wanted) {
    problem(line, key.path, " is ", value_text(node), "; give ", wanted, ", as ", key.path, " = ",
            key.example);
  }
  template <typename... Parts>
  void problem(std::int64_t line, const Parts&... parts) {
    problems_.push_back(text(path_, ":", line, ": ", parts...));
  }

  static constexpr std::int64_t kMostDevices = std::int64_t{1} << 32;
  const std::string& path_;
  std::vector<Key> keys_;
  std::vector<bool> given_;
  std::vector<std::string> problems_;
};

std::string text_of(const Key& key) {
  if (const auto* name = std::get_if<std::string*>(&key.slot)) return toml_string(**name);
  if (const auto* flag = std::get_if<bool*>(&key.slot)) return **flag ? "true" : "false";
  if (const auto* source = std::get_if<KernelSource*>(&key.slot))
    return text("\"", kKernelSources[static_cast<std::size_t>(**source)], "\"");
  const auto* whole = std::get_if<std::int64_t*>(&key.slot);
  if (whole == nullptr || key.units.empty()) {
    const std::string number =
        whole != nullptr ? number_text(**whole) : number_text(*std::get<double*>(key.slot));
    return key.units.empty() ? number : text("\"", number, " ", key.units[0].name, "\"");
  }
  Unit best = key.units[0];  // the largest of which it is a whole number
  for (const Unit& unit : key.units) {
    if (**whole > 0 && **whole % std::llround(unit.size) == 0 && unit.size > best.size) best = unit;
  }
  return text("\"", **whole / std::llround(best.size), " ", best.name, "\"");
}

}  // namespace

Machine parse_machine_file(std::string_view toml, const std::string& path) {
  return FileReader(path).read(parse_toml(toml, path));
}

std::string machine_name_text(std::string_view name) {
  std::string out = printable(name);
  std::ranges::replace_if(
      out, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return trim(out).empty() ? "machine" : out;
}

std::string machine_file_text(const Machine& machine) {
  Machine copy = machine;
  std::string out, table;
  for (const Key& key : keys_of(copy)) {
    const auto* bytes = std::get_if<std::int64_t*>(&key.slot);
    const auto* words = std::get_if<std::string*>(&key.slot);
    if ((bytes != nullptr && !key.units.empty() && **bytes == 0) ||
        (words != nullptr && !key.required && (*words)->empty()))
      continue;  // of which nothing is told
    const std::size_t dot = key.path.rfind('.');
    const std::string of = dot == std::string::npos ? "" : key.path.substr(0, dot);
    if (of != table) out += text("\n[", of, "]\n");
    table = of;
    out += text(of.empty() ? key.path : key.path.substr(dot + 1), " = ", text_of(key), "\n");
  }
  return out;
}

std::vector<MachineKey> machine_keys() {
  Machine machine;
  std::vector<MachineKey> out;
  for (const Key& key : keys_of(machine))
    out.push_back({key.path, std::string(key.example), key.required});
  return out;
}

}  // namespace tessera
