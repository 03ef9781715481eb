/// Cells with several labels.

#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/data/label_kind.h"
#include "tessera/data/rows.h"
#include "tessera/files/clean.h"

namespace tessera {

namespace {

using nlohmann::json;

std::vector<std::string> in_json_list(const std::string& cell, const std::string& where) {
  const json list = json::parse(cell, nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> out;
  bool good = list.is_array();
  for (std::size_t i = 0; good && i < list.size(); ++i) {
    const json& one = list[i];
    good = one.is_string() || one.is_number() || one.is_boolean();
    if (!good) break;
    out.push_back(one.is_string()    ? std::string(trim(one.get<std::string>()))
                  : one.is_boolean() ? (one.get<bool>() ? "1" : "0")
                                     : one.dump());
  }
  if (!good)
    fail(Fault::Data, where, " is ", label_names_text({&cell, 1}),
         ", which begins as a JSON list and is none of texts or numbers; write it like ",
         R"(["news", "sports"] or [0.2, 3.8])");
  return out;
}

}  // namespace

std::vector<std::string> listed_labels(const RowsChoice& choice, const std::string& cell,
                                       const std::string& where) {
  if (cell.starts_with('[') && cell.ends_with(']')) return in_json_list(cell, where);
  std::vector<std::string> out;
  const std::string& between = choice.label_separator;
  for (std::size_t at = 0; !trim(cell).empty();) {
    const std::size_t end = between.empty() ? cell.npos : cell.find(between, at);
    out.emplace_back(trim(std::string_view(cell).substr(at, end - at)));
    if (end == cell.npos) break;
    at = end + between.size();
  }
  return out;
}

std::vector<std::string> unnamed_labels(std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(text("LABEL_", i));
  return out;
}

}  // namespace tessera
