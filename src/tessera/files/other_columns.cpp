#include "tessera/files/other_columns.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/deep_json.h"
#include "tessera/files/file.h"

namespace tessera {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostNames = 1000;  // each is a cell in every row

std::string cell_text(const ordered_json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// Takes the keys `texts` out of an object, "a.b" out of the one that its key a has; where that
/// leaves nothing, a too. `path`: that of the object, with a point behind it.
void take_texts_out(ordered_json& object, std::span<const std::string> texts,
                    const std::string& path) {
  for (auto it = object.begin(); it != object.end();) {
    const std::string name = path + it.key();
    bool gone = std::ranges::find(texts, name) != texts.end();
    if (!gone && it->is_object() && !it->empty()) {
      take_texts_out(*it, texts, name + ".");
      gone = it->empty();
    }
    it = gone ? object.erase(it) : std::next(it);
  }
}

OtherColumns of_json_lines(std::string_view bytes, const std::string& path, const Table& read,
                           std::span<const std::string> texts) {
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  OtherColumns out;
  std::int64_t line = 0;
  for (std::size_t at = 0, row = 0; row < read.lines.size(); ++row) {
    std::string_view json;
    for (; line < read.lines[row]; ++line) {
      const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
      json = bytes.substr(at, end - at);
      at = end + 1;
    }
    if (is_deep_json(json))
      fail(Fault::Data, "'", path, "' line ", line, " has lists or objects nested deeper than ",
           kMostJsonDepth, "; remove their key");
    std::vector<std::string>& cells = out.rows.emplace_back(out.names.size());
    ordered_json object = ordered_json::parse(json);
    take_texts_out(object, texts, "");
    for (const auto& [key, value] : object.items()) {
      const auto found = std::ranges::find(out.names, key);
      const auto column = static_cast<std::size_t>(found - out.names.begin());
      if (found == out.names.end()) {
        if (out.names.size() == kMostNames)
          fail(Fault::Data, "'", path, "' has more than ", kMostNames, " keys up to line ", line,
               ", and each would be a column beside the prediction; remove keys, or put them ",
               "into one object");
        out.names.push_back(key);
        cells.emplace_back();
      }
      cells[column] = cell_text(value);
    }
  }
  for (std::vector<std::string>& cells : out.rows) cells.resize(out.names.size());
  return out;
}

}  // namespace

OtherColumns read_other_columns(const std::string& path, std::span<const std::string> texts,
                                const TableOptions& options) {
  if (table_format(path, options) == TableFormat::JsonLines)
    return of_json_lines(read_file(path), path, read_table(path, texts, options), texts);
  OtherColumns out;
  // Columns are taken by their position: two that are no texts may have one name.
  TableOptions numbered = options;
  numbered.replace_header = options.names.empty() || options.replace_header;
  numbered.names.clear();
  std::vector<std::string> read;
  for (const std::string& name : table_columns(path, options)) {
    const bool again = std::ranges::find(numbered.names, name) != numbered.names.end();
    numbered.names.push_back(again ? text(name, " (column ", numbered.names.size() + 1, ")")
                                   : name);
    if (std::ranges::find(texts, name) != texts.end()) continue;
    out.names.push_back(name);
    read.push_back(numbered.names.back());
  }
  Table table = read_table(path, read, numbered);
  for (std::size_t row = 0; row < table.lines.size(); ++row) {
    std::vector<std::string>& cells = out.rows.emplace_back();
    for (std::vector<std::string>& column : table.columns) cells.push_back(std::move(column[row]));
  }
  return out;
}

}  // namespace tessera
