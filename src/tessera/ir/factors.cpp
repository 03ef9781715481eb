#include "tessera/ir/factors.h"

#include <algorithm>
#include <array>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr std::array<const char*, 6> kKinds = {"pass", "max", "min", "one", "stat", "whole"};

std::vector<std::string> words(std::string_view line) {
  std::vector<std::string> out;
  for (const std::string& word : split(line, ' ')) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

struct Reader {
  Factors& out;
  std::string_view rule;

  int factor(const std::string& name) {
    int id = out.find(name);
    if (id < 0) {
      id = static_cast<int>(out.list.size());
      out.list.push_back({name, 0, FactorKind::Pass});
    }
    return id;
  }

  /// "b (h e) . d": one entry per dim; "." is a dim without a factor; "..." stands for the missing
  /// dims.
  Factors::Dims dims(std::string_view line, int ndim) {
    Factors::Dims result;
    bool inside = false;
    const std::vector<std::string> tokens = words(line);
    int named = 0;
    for (const std::string& token : tokens) {
      if (token[0] == '(') inside = true;
      if (token.back() == ')') inside = false;
      named += !inside && token != "...";
    }
    for (const std::string& token : tokens) {
      if (token == "...") {
        // Dims under "..." are aligned at the right, so that operands of fewer dims share the minor
        // ones.
        for (int i = ndim - named; i > 0; --i) result.push_back({factor(text("..", i))});
        continue;
      }
      std::string name = token;
      if (name[0] == '(') name.erase(0, 1), result.emplace_back(), inside = true;
      const bool closes = name.back() == ')';
      if (closes) name.pop_back();
      if (inside) {
        result.back().push_back(factor(name));
      } else {
        result.emplace_back();
        if (name != ".") result.back().push_back(factor(name));
      }
      if (closes) inside = false;
    }
    check(static_cast<int>(result.size()) == ndim, "rule '", rule, "' gives ", result.size(),
          " dims to a value of ", ndim);
    return result;
  }

  void note(const std::vector<std::string>& tokens) {
    if (tokens[0] == "joint" || tokens[0] == "each") {
      out.linear = tokens[0] == "joint" ? Linear::Joint : Linear::Each;
      for (std::size_t i = 1; i < tokens.size(); ++i)
        out.linear_operands.push_back(std::stoi(tokens[i]));
      return;
    }
    if (tokens[0] == "rows") {
      out.rows_factor = out.find(tokens.at(1));
      check(out.rows_factor >= 0, "rule '", rule, "' has no factor '", tokens[1], "'");
      for (std::size_t i = 2; i < tokens.size(); ++i)
        out.rows_operands.push_back(std::stoi(tokens[i]));
      return;
    }
    for (const std::string& token : tokens) {
      const std::vector<std::string> parts = split(token, ':');
      const auto kind =
          parts.size() == 2 ? std::find(kKinds.begin(), kKinds.end(), parts[1]) : kKinds.end();
      check(kind != kKinds.end(), "rule '", rule, "': '", token, "' is not like d:stat");
      const int id = out.find(parts[0]);
      check(id >= 0, "rule '", rule, "' has no factor '", parts[0], "'");
      out.list[static_cast<std::size_t>(id)].kind = static_cast<FactorKind>(kind - kKinds.begin());
    }
  }
};

}  // namespace

Factors Factors::parse(std::string_view rule, const std::vector<int>& ndims) {
  Factors out;
  Reader reader{out, rule};
  const std::vector<std::string> parts = split(rule, '|');
  const std::size_t arrow = parts[0].find("->");
  check(arrow != std::string::npos, "rule '", rule, "' has no ->");
  std::size_t next = 0;
  const auto read = [&](std::string_view side, std::vector<Dims>& into) {
    if (trim(side).empty()) return;
    for (const std::string& operand : split(side, ',')) {
      check(next < ndims.size(), "rule '", rule, "' has more operands and results than the op");
      into.push_back(reader.dims(operand, ndims[next++]));
    }
  };
  read(std::string_view(parts[0]).substr(0, arrow), out.ins);
  // A scalar result is an empty dims list.
  const std::string_view results = std::string_view(parts[0]).substr(arrow + 2);
  if (trim(results).empty() && next < ndims.size()) {
    out.outs.push_back({});
    ++next;
  } else {
    read(results, out.outs);
  }
  check(next == ndims.size(), "rule '", rule,
        "' has fewer operands and results than the op: ", next, " of ", ndims.size());
  for (std::size_t i = 1; i < parts.size(); ++i) reader.note(words(parts[i]));
  return out;
}

int Factors::find(std::string_view name) const {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool Factors::is_linear(int operand) const {
  return linear != Linear::None && std::find(linear_operands.begin(), linear_operands.end(),
                                             operand) != linear_operands.end();
}

bool Factors::reads_rows(int operand, int factor) const {
  return factor >= 0 && factor == rows_factor &&
         std::find(rows_operands.begin(), rows_operands.end(), operand) != rows_operands.end();
}

bool Factors::has(const Dims& dims, int factor) const {
  return std::any_of(dims.begin(), dims.end(), [&](const std::vector<int>& fs) {
    return std::find(fs.begin(), fs.end(), factor) != fs.end();
  });
}

bool Factors::reduces(int factor, int result) const {
  const FactorKind kind = list[static_cast<std::size_t>(factor)].kind;
  const bool reducible = kind != FactorKind::Stat && kind != FactorKind::Whole;
  return reducible && !has(outs[static_cast<std::size_t>(result)], factor);
}

Monoid Factors::monoid(int factor) const {
  switch (list[static_cast<std::size_t>(factor)].kind) {
    case FactorKind::Max: return Monoid::Max;
    case FactorKind::Min: return Monoid::Min;
    case FactorKind::One: return Monoid::One;
    default: return Monoid::Sum;
  }
}

std::string to_text(const Factors& factors) {
  const auto dims_text = [&](const Factors::Dims& dims) {
    std::string out;
    for (const std::vector<int>& fs : dims) {
      std::vector<std::string> names;
      for (const int f : fs) names.push_back(factors.list[static_cast<std::size_t>(f)].name);
      const std::string one = names.empty() ? "." : join(names, " ");
      out += text(out.empty() ? "" : " ", names.size() > 1 ? "(" + one + ")" : one);
    }
    return out;
  };
  std::vector<std::string> ins, outs, kinds;
  for (const auto& dims : factors.ins) ins.push_back(dims_text(dims));
  for (const auto& dims : factors.outs) outs.push_back(dims_text(dims));
  for (const Factor& f : factors.list) {
    if (f.kind != FactorKind::Pass)
      kinds.push_back(text(f.name, ":", kKinds[static_cast<std::size_t>(f.kind)]));
  }
  std::string line = "";
  for (std::size_t i = 0; i < ins.size(); ++i) line += text(i ? ", " : "", ins[i]);
  line += " -> ";
  for (std::size_t i = 0; i < outs.size(); ++i) line += text(i ? ", " : "", outs[i]);
  if (!kinds.empty()) line += " | " + join(kinds, " ");
  if (factors.linear != Linear::None) {
    line += factors.linear == Linear::Joint ? " | joint" : " | each";
    for (const int i : factors.linear_operands) line += text(" ", i);
  }
  if (factors.rows_factor >= 0) {
    line += text(" | rows ", factors.list[static_cast<std::size_t>(factors.rows_factor)].name);
    for (const int i : factors.rows_operands) line += text(" ", i);
  }
  return line;
}

}  // namespace tessera
