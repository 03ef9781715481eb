/// Tables: the first byte says what the rest is, t: TSV, j: JSON lines, others: CSV. Written as
/// CSV, what was read is read again.

#include "tessera/files/table_file.h"

#include <algorithm>

#include "fuzz/target.h"
#include "tessera/base/utf8.h"

namespace tessera::fuzz {

namespace {

/// As CSV with every field in quotes.
std::string written(const Table& table, const std::vector<std::string>& names) {
  std::string out;
  const auto field = [&](std::string_view text, bool last) {
    out += '"';
    for (const char c : text) out += c == '"' ? std::string(2, c) : std::string(1, c);
    out += last ? "\"\r\n" : "\",";
  };
  for (std::size_t i = 0; i < names.size(); ++i) field(names[i], i + 1 == names.size());
  for (std::size_t row = 0; row < table.lines.size(); ++row) {
    for (std::size_t i = 0; i < names.size(); ++i)
      field(table.columns[i][row], i + 1 == names.size());
  }
  return out;
}

void run(std::string_view input) {
  if (input.empty()) return;
  TableOptions options;
  options.format = input[0] == 't'   ? TableFormat::Tsv
                   : input[0] == 'j' ? TableFormat::JsonLines
                                     : TableFormat::Csv;
  const std::vector<std::string> wanted = {"text", "a.b"};
  const Table table = parse_table(input.substr(1), "input", wanted, options);
  then([&] {
    check(table.columns.size() == wanted.size() && table.rows() > 0, "a table of no shape");
    check(std::ranges::is_sorted(table.lines) && table.lines[0] >= 1, "rows in no order");
    for (const std::vector<std::string>& column : table.columns) {
      check(std::ssize(column) == table.rows(), "columns of several sizes");
      for (const std::string& text : column)
        check(find_invalid_utf8(text) == std::string::npos, "a text that is not UTF-8");
    }
    const Table again =
        parse_table(written(table, wanted), "written", wanted, {.format = TableFormat::Csv});
    check(again.columns == table.columns, "what was written reads back as something else");
  });
}

}  // namespace

const Target kTarget = {1 << 20, 256, run};

}  // namespace tessera::fuzz
