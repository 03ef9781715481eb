#include "tessera/tensor/machine.h"

#include <charconv>
#include <cmath>

#include "tessera/base/error.h"

namespace tessera {

namespace {

struct Row {
  std::string_view name;
  LinkSpeed Machine::*link;
};
constexpr std::array<Row, 4> kRows = {Row{"core", &Machine::core}, Row{"socket", &Machine::socket},
                                      Row{"host", &Machine::host}, Row{"rack", &Machine::rack}};

/// The number before `unit`, which ends `word`; not a number if there is none.
double number_before(std::string_view word, std::string_view unit) {
  if (word.size() <= unit.size() || word.substr(word.size() - unit.size()) != unit) return NAN;
  word.remove_suffix(unit.size());
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? value : NAN;
}

}  // namespace

const LinkSpeed& Machine::link(Level level) const {
  check(level != Level::Time, "no bytes move along an axis of time");
  return this->*kRows[static_cast<std::size_t>(level) - 1].link;
}

std::string to_text(const Machine& machine) {
  std::string out;
  for (const Row& row : kRows) {
    const LinkSpeed& link = machine.*row.link;
    out += text(out.empty() ? "" : " ", row.name, "=", link.gigabytes_per_s, "GB/s+",
                link.microseconds, "us");
  }
  return out;
}

Machine parse_machine(std::string_view line) {
  Machine out;
  for (const std::string& part : split(line, ' ')) {
    const std::string_view word = trim(part);
    if (word.empty()) continue;
    const std::size_t equals = word.find('='), plus = word.rfind("s+");
    require(equals != std::string_view::npos && plus != std::string_view::npos && plus > equals,
            "machine '", line, "': '", word, "' is not like core=15GB/s+1us");
    LinkSpeed* link = nullptr;
    for (const Row& row : kRows) {
      if (row.name == word.substr(0, equals)) link = &(out.*row.link);
    }
    require(link != nullptr, "machine '", line, "': unknown level '", word.substr(0, equals),
            "'; levels are core, socket, host and rack");
    *link = {number_before(word.substr(equals + 1, plus - equals), "GB/s"),
             number_before(word.substr(plus + 2), "us")};
    require(std::isfinite(link->gigabytes_per_s) && link->gigabytes_per_s > 0, "machine '", line,
            "': the speed in '", word, "' is not a positive number of GB/s");
    require(std::isfinite(link->microseconds) && link->microseconds >= 0, "machine '", line,
            "': the latency in '", word, "' is not a number of us, 0 or more");
  }
  return out;
}

}  // namespace tessera
