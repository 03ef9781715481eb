#include "tessera/files/table_file.h"

#include <algorithm>
#include <cctype>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/base/utf8.h"
#include "tessera/files/json_cells.h"
#include "tessera/files/json_lines.h"
#include "tessera/files/other_kinds.h"
#include "tessera/files/unpack.h"

namespace tessera {

namespace {

/// The rows of CSV or TSV, one after another.
class DelimitedRows {
 public:
  DelimitedRows(std::string_view bytes, const std::string& path, TableFormat format)
      : bytes_(bytes),
        path_(path),
        quotes_(format == TableFormat::Csv),
        delimiter_(quotes_ ? ',' : '\t'),
        ends_(quotes_ ? ",\n" : "\t\n"),
        bad_(find_invalid_utf8(bytes)) {}

  /// The fields of the next row that has a character; false: there is none. `names` are those of
  /// the columns, as far as they are known.
  bool next(std::span<const std::string> names, std::vector<std::string>& fields) {
    skip_empty_lines();
    if (at_ == bytes_.size()) return false;
    names_ = names;
    begin_ = line_;
    row_ = at_;
    fields.clear();
    for (bool more = true; more;) {
      field_ = fields.size();
      if (field_ == kMostFields)
        refuse("a row has at most ", kMostFields, " fields; is the file of this format?");
      const std::size_t begin = at_;
      fields.push_back(quotes_ && bytes_[at_] == '"' ? quoted() : plain());
      if (bad_ < at_) {
        line_ = line_ - count_lines(begin, at_) + count_lines(begin, bad_);
        refuse("a byte is not UTF-8; convert the file to UTF-8");
      }
      more = at_ < bytes_.size() && bytes_[at_] == delimiter_;
      if (more && ++at_ == bytes_.size()) {  // the last field is empty
        fields.emplace_back();
        more = false;
      }
    }
    end_line();
    return true;
  }
  /// Where the row begins, from 1.
  std::int64_t line() const { return begin_; }

 private:
  std::int64_t count_lines(std::size_t begin, std::size_t end) const {
    return std::ranges::count(bytes_.substr(begin, end - begin), '\n');
  }
  /// Bytes of the end of a line at `at`: \n, \r\n, and \r that ends the file. 0: there is none.
  std::size_t line_end(std::size_t at) const {
    const std::string_view rest = bytes_.substr(at, 2);
    if (rest.starts_with('\n') || rest == "\r") return 1;
    return rest == "\r\n" ? 2 : 0;
  }
  void end_line() {
    const std::size_t size = line_end(at_);
    at_ += size;
    if (size > 0) ++line_;
  }
  void skip_empty_lines() {
    while (at_ < bytes_.size() && line_end(at_) > 0) end_line();
  }
  bool ends_field(std::size_t at) const {
    return at == bytes_.size() || bytes_[at] == delimiter_ || line_end(at) > 0;
  }

  std::string plain() {
    const std::size_t begin = at_;
    at_ = std::min(bytes_.find_first_of(ends_, at_), bytes_.size());
    require_length(at_);
    const bool ends_line = at_ == bytes_.size() || bytes_[at_] == '\n';
    if (ends_line && at_ > begin && bytes_[at_ - 1] == '\r') --at_;
    const std::string_view out = bytes_.substr(begin, at_ - begin);
    if (quotes_ && out.find('"') != out.npos)
      refuse("a quote inside an unquoted field; quote the field ",
             "and double its quotes, or, if no field is quoted, use tabs and the format tsv");
    return std::string(out);
  }

  std::string quoted() {
    const std::int64_t opened = line_;
    std::string out;
    for (++at_;; ++at_) {
      const std::size_t quote = bytes_.find('"', at_);
      if (quote == bytes_.npos) {
        line_ = opened;
        refuse("the quote that begins the field is not closed; close it, or, if no field is ",
               "quoted, use tabs and the format tsv");
      }
      require_length(quote);
      out += bytes_.substr(at_, quote - at_);
      line_ += count_lines(at_, quote);
      at_ = quote + 1;
      if (at_ == bytes_.size() || bytes_[at_] != '"') break;
      out += '"';
    }
    if (!ends_field(at_))
      refuse("text after the quote that closes the field; double quotes that belong ",
             "to the text");
    return out;
  }

  /// Of the row, as far as it is known.
  void require_length(std::size_t end) const {
    require_line_length(static_cast<std::int64_t>(end - row_), {&path_, begin_}, "row");
  }

  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    const std::string name =
        field_ < names_.size() ? text(" ", column_names_text(names_.subspan(field_, 1))) : "";
    fail(Fault::Data, "'", path_, "' line ", line_, ", column ", field_ + 1, name, ": ", parts...);
  }

  std::string_view bytes_;
  const std::string& path_;
  bool quotes_;
  char delimiter_;
  std::string_view ends_;  // of a field without quotes
  std::size_t bad_;        // the first byte that is not UTF-8, or npos
  std::span<const std::string> names_;
  std::size_t at_ = 0, row_ = 0, field_ = 0;
  std::int64_t line_ = 1, begin_ = 1;
};

/// Where the wanted columns are.
std::vector<std::size_t> places_of(std::span<const std::string> wanted,
                                   std::span<const std::string> names, const std::string& path) {
  std::vector<std::size_t> out;
  for (const std::string& name : wanted) {
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
      fail(Fault::Data, "'", path, "' has no column '", printable(name), "'; its columns are ",
           column_names_text(names));
    if (std::find(at + 1, names.end(), name) != names.end())
      fail(Fault::Data, "'", path, "' has two columns '", printable(name), "'; rename one");
    out.push_back(static_cast<std::size_t>(at - names.begin()));
  }
  return out;
}

/// Rows that do not fit, of one file: counted, or refused.
class MisfitRows {
 public:
  explicit MisfitRows(BadRows rule) : rule_(rule) {}

  /// `what` the row has that does not fit.
  void add(const std::string& what) {
    if (rule_ == BadRows::Refuse)
      fail(Fault::Data, what, "; give every row a field for each, or skip such rows with ",
           "--skip-bad-rows");
    if (count_++ == 0) first_ = what;
  }
  /// To be called behind the last row, of which so many fit.
  void finish(Table& out) const {
    if (count_ == 0) return;
    if (rule_ == BadRows::LeaveOutFew && count_ * kFew > out.rows() + count_)
      fail(Fault::Data, first_, count_ > 1 ? text(", the first of ", count_, " such rows") : "",
           "; give every row a field for each, or skip such rows with --skip-bad-rows");
    out.notice = text(first_,
                      count_ > 1 ? text(", the first of ", count_, " such rows, which are")
                                 : text(": 1 row, which is"),
                      " skipped");
  }

 private:
  static constexpr std::int64_t kFew = 10;  // one in so many

  BadRows rule_;
  std::int64_t count_ = 0;
  std::string first_;
};

void read_delimited(std::string_view bytes, const std::string& path,
                    std::span<const std::string> wanted, TableFormat format,
                    const TableOptions& options, Table& out) {
  DelimitedRows rows(bytes, path, format);
  MisfitRows misfits(options.bad_rows);
  std::vector<std::string> names = options.names, fields;
  const bool has_header = names.empty() || options.replace_header;
  if (has_header && !rows.next({}, fields)) return;
  if (names.empty()) names = fields;
  const std::vector<std::size_t> places = places_of(wanted, names, path);
  while (rows.next(names, fields)) {
    if (fields.size() != names.size()) {
      misfits.add(text("'", path, "' line ", rows.line(), " has ",
                       counted(std::ssize(fields), "field"), " but there are ",
                       counted(std::ssize(names), "column"), ", ", column_names_text(names)));
      continue;
    }
    for (std::size_t i = 0; i < places.size(); ++i)
      out.columns[i].push_back(std::move(fields[places[i]]));
    out.lines.push_back(rows.line());
  }
  misfits.finish(out);
}

void read_json_lines(std::string_view bytes, const std::string& path,
                     std::span<const std::string> wanted, const TableOptions& options, Table& out) {
  MisfitRows misfits(options.bad_rows);
  const CellRules rules{.last_may_lack = options.may_lack_last,
                        .last_may_be_list = options.last_may_be_list,
                        .nested = options.nested};
  std::int64_t line = 1;
  for (std::size_t at = 0; at < bytes.size(); ++line) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string_view row = bytes.substr(at, end - at);
    at = end + 1;
    if (row.find_first_not_of(" \t\r") == row.npos) continue;
    require_line_length(std::ssize(row), {&path, line});
    try {
      std::vector<std::string> cells = cells_in_line(row, wanted, {&path, line}, rules);
      for (std::size_t i = 0; i < cells.size(); ++i) out.columns[i].push_back(std::move(cells[i]));
      out.lines.push_back(line);
    } catch (const Error& error) {
      if (options.bad_rows != BadRows::LeaveOut) throw;
      misfits.add(error.what());
    }
  }
  misfits.finish(out);
}

}  // namespace

std::optional<TableFormat> table_format(std::string_view path) {
  path = unpacked_name(path);
  std::string ending(path.substr(std::min(path.rfind('.'), path.size())));
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (ending == ".csv") return TableFormat::Csv;
  if (ending == ".tsv") return TableFormat::Tsv;
  if (ending == ".jsonl" || ending == ".json") return TableFormat::JsonLines;
  return std::nullopt;
}

std::string column_names_text(std::span<const std::string> names) {
  constexpr std::size_t kMostNamed = 16, kMostBytes = 40;
  std::vector<std::string> out;
  for (const std::string& name : names.first(std::min(names.size(), kMostNamed))) {
    std::size_t size = std::min(name.size(), kMostBytes);
    // Not within a character.
    while (size > 0 && size < name.size() &&
           (static_cast<unsigned char>(name[size]) & 0xC0) == 0x80)
      --size;
    out.push_back(text("'", printable(std::string_view(name).substr(0, size)),
                       size < name.size() ? "...'" : "'"));
  }
  return text(join(out),
              names.size() > out.size() ? text(" and ", names.size() - out.size(), " more") : "");
}

TableFormat table_format(const std::string& path, const TableOptions& options) {
  const std::optional<TableFormat> format = options.format ? options.format : table_format(path);
  require(format.has_value(), "the name of '", path,
          "' does not show its format; give data-format ",
          "csv, tsv or jsonl, or a file whose name ends in .csv, .tsv or .jsonl");
  return *format;
}

namespace {

/// Without a byte order mark. Errors: no format; names for JSON lines; nothing.
TableFormat begin_table(std::string_view& bytes, const std::string& path,
                        const TableOptions& options) {
  refuse_other_kind(bytes, path);
  const TableFormat format = table_format(path, options);
  require(format != TableFormat::JsonLines || options.names.empty(), "'", path, "' is JSON lines, ",
          "whose objects name their columns; leave column-names out");
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  if (bytes.empty()) fail(Fault::Data, "'", path, "' is empty; give a file with rows");
  return format;
}

}  // namespace

std::vector<std::string> table_columns(const std::string& path, const TableOptions& options) {
  const std::string file = read_contents(path);
  std::string_view bytes = file;
  const TableFormat format = begin_table(bytes, path, options);
  if (!options.names.empty()) return options.names;
  std::vector<std::string> out;
  if (format != TableFormat::JsonLines) {
    DelimitedRows(bytes, path, format).next({}, out);
    return out;
  }
  const std::size_t begin = std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size());
  const std::int64_t line = 1 + std::ranges::count(bytes.substr(0, begin), '\n');
  const std::string_view first = bytes.substr(begin, bytes.find('\n', begin) - begin);
  require_line_length(std::ssize(first), {&path, line});
  return keys_in_line(first, {&path, line});
}

Table parse_table(std::string_view bytes, const std::string& path,
                  std::span<const std::string> wanted, const TableOptions& options) {
  const TableFormat format = begin_table(bytes, path, options);
  Table out;
  out.columns.resize(wanted.size());
  if (format == TableFormat::JsonLines) {
    read_json_lines(bytes, path, wanted, options, out);
  } else {
    read_delimited(bytes, path, wanted, format, options, out);
  }
  if (out.lines.empty())
    fail(Fault::Data, "'", path, "' has no row",
         format == TableFormat::JsonLines ? "" : " after its header", "; give a file with rows");
  return out;
}

Table read_table(const std::string& path, std::span<const std::string> wanted,
                 const TableOptions& options) {
  return parse_table(read_contents(path), path, wanted, options);
}

}  // namespace tessera
