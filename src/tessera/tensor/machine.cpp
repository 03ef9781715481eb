#include "tessera/tensor/machine.h"

#include <algorithm>
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

struct RateRow {
  std::string_view name, unit;
  double Machine::*rate;
};
constexpr std::array<RateRow, 2> kRates = {
    RateRow{"compute", "GFLOP/s", &Machine::gigaflops_per_s},
    RateRow{"memory", "GB/s", &Machine::memory_gigabytes_per_s}};

/// The number before `unit`, which ends `word`; not a number if there is none.
double number_before(std::string_view word, std::string_view unit) {
  if (word.size() <= unit.size() || word.substr(word.size() - unit.size()) != unit) return NAN;
  word.remove_suffix(unit.size());
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? value : NAN;
}

double speed_of(std::string_view line, std::string_view word, std::string_view number,
                std::string_view unit) {
  const double out = number_before(number, unit);
  require(std::isfinite(out) && out > 0, "machine '", line, "': the speed in '", word,
          "' is not a positive number of ", unit);
  return out;
}

/// True where `word` is of what a rank can do.
bool read_rate(std::string_view line, std::string_view word, Machine& out) {
  const std::size_t equals = word.find('=');
  for (const RateRow& row : kRates) {
    if (row.name != word.substr(0, equals)) continue;
    require(equals != std::string_view::npos, "machine '", line, "': '", word, "' is not like ",
            row.name, "=20", row.unit);
    out.*row.rate = speed_of(line, word, word.substr(equals + 1), row.unit);
    return true;
  }
  return false;
}

}  // namespace

const LinkSpeed& Machine::link(Level level) const {
  check(level != Level::Time, "no bytes move along an axis of time");
  return this->*kRows[static_cast<std::size_t>(level) - 1].link;
}

LinkPrice Machine::price(Level level) const {
  const LinkSpeed& speed = link(level);
  return {std::round(1e6 / speed.gigabytes_per_s), std::round(1e9 * speed.microseconds)};
}

double Machine::relative_price(Level level) const {
  return core.gigabytes_per_s / link(level).gigabytes_per_s;
}

double Machine::move_seconds(Level level, double bytes, double steps) const {
  const LinkPrice link = price(level);
  return 1e-15 * (link.per_byte * bytes + link.per_step * steps);
}

double Machine::work_seconds(double flops, double bytes) const {
  return 1e-9 * std::max(flops / gigaflops_per_s, bytes / memory_gigabytes_per_s);
}

std::string to_text(const Machine& machine) {
  std::string out;
  for (const Row& row : kRows) {
    const LinkSpeed& link = machine.*row.link;
    out += text(out.empty() ? "" : " ", row.name, "=", link.gigabytes_per_s, "GB/s+",
                link.microseconds, "us");
  }
  for (const RateRow& row : kRates) out += text(" ", row.name, "=", machine.*row.rate, row.unit);
  return out;
}

Machine parse_machine(std::string_view line) {
  Machine out;
  for (const std::string& part : split(line, ' ')) {
    const std::string_view word = trim(part);
    if (word.empty() || read_rate(line, word, out)) continue;
    const std::size_t equals = word.find('='), plus = word.rfind("s+");
    require(equals != std::string_view::npos && plus != std::string_view::npos && plus > equals,
            "machine '", line, "': '", word, "' is not like core=15GB/s+1us");
    LinkSpeed* link = nullptr;
    for (const Row& row : kRows) {
      if (row.name == word.substr(0, equals)) link = &(out.*row.link);
    }
    require(link != nullptr, "machine '", line, "': unknown level '", word.substr(0, equals),
            "'; levels are core, socket, host and rack");
    *link = {speed_of(line, word, word.substr(equals + 1, plus - equals), "GB/s"),
             number_before(word.substr(plus + 2), "us")};
    require(std::isfinite(link->microseconds) && link->microseconds >= 0, "machine '", line,
            "': the latency in '", word, "' is not a number of us, 0 or more");
  }
  return out;
}

}  // namespace tessera
