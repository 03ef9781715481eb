#pragma once
/// Files with a row for each sample and a name for each column: CSV, TSV, JSON lines.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class TableFormat {
  Csv,        // RFC 4180: commas; a field in quotes may hold commas, new lines and doubled quotes
  Tsv,        // tabs; a quote is a character as any other, as in the files of GLUE
  JsonLines,  // an object in each line
};
inline constexpr std::array<std::string_view, 3> kTableFormats = {"csv", "tsv", "jsonl"};

/// Most fields of a row of CSV or TSV.
inline constexpr std::size_t kMostFields = 100'000;

/// By how the path ends, in small or capital letters: .csv, .tsv, .jsonl, .json, each also with .gz
/// or .zst behind it. Nothing: otherwise.
std::optional<TableFormat> table_format(std::string_view path);

/// What becomes of a row of CSV or TSV with more or fewer fields than there are columns, and of a
/// line of JSON lines that is no object or lacks a wanted key.
enum class BadRows {
  Refuse,
  LeaveOutFew,  // rows of CSV and TSV, where at most a tenth of all are so; else an error
  LeaveOut,
};

struct TableOptions {
  std::optional<TableFormat> format = {};  // none: table_format of the path
  /// Of CSV and TSV: what the columns are called where the first row does not say it. Empty: it
  /// does.
  std::vector<std::string> names = {};
  bool replace_header = false;  // the first row has other names, which are passed over
  BadRows bad_rows = BadRows::Refuse;
  // Of JSON lines:
  bool may_lack_last = false;  // the last wanted key may be missing or null
  bool last_may_be_list =
      false;  // ... or a list of texts, numbers, true and false, which is its JSON
  std::vector<std::string> nested = {};  // these may be lists or objects, which are their JSON
};

/// Some columns of a file.
struct Table {
  /// In the order in which they were asked for, a text for each row.
  std::vector<std::vector<std::string>> columns;
  std::vector<std::int64_t> lines;  // in which each row begins, from 1
  std::string notice = {};          // of rows that were left out; empty: there were none

  std::int64_t rows() const { return static_cast<std::int64_t>(lines.size()); }
};

/// What a file is: as the options say, or else its name. Errors: Fault::Usage: neither does.
TableFormat table_format(const std::string& path, const TableOptions& options);

/// Reads the columns that are called `wanted`; no name is there twice.
///
/// A byte order mark at the beginning is left out; a row ends with \n or \r\n. Lines without any
/// character are passed over, and in JSON lines those of blanks alone. What is in quotes in CSV
/// stays as it is, \r\n too. In JSON lines "a.b" is the key b of the object that key a has; texts
/// are taken as they are, numbers as they are written, true and false as these words.
/// TableOptions::bad_rows says what becomes of rows that do not fit.
///
/// Errors: Fault::Data: as of read_file; an empty file, or one without a row; a column that is not
/// there, with those that are, or that is there twice; with the line and the column: a row of more
/// or fewer fields than there are columns, a quote that is not closed or stands within a field,
/// bytes that are not UTF-8, what is no JSON object, a key without a text, a row of more than
/// kMostLineBytes (json_lines.h) or of more than kMostFields. Fault::Usage: no format
/// is told, and the path has none; names for JSON lines.
Table read_table(const std::string& path, std::span<const std::string> wanted,
                 const TableOptions& options = {});

/// The same of bytes; `path` is for messages.
Table parse_table(std::string_view bytes, const std::string& path,
                  std::span<const std::string> wanted, const TableOptions& options);

/// Names of the columns of a file; in JSON lines, keys of the first object. Errors: as of
/// read_table.
std::vector<std::string> table_columns(const std::string& path, const TableOptions& options = {});

/// "text, 'a b', label and 3 more": for messages, no longer than some lines.
std::string column_names_text(std::span<const std::string> names);

}  // namespace tessera
