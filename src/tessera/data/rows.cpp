#include "tessera/data/rows.h"

#include <algorithm>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/label_kind.h"
#include "tessera/files/unpack.h"

namespace tessera {

namespace {

/// The columns of labels: one, or several.
std::vector<std::string> label_columns(const std::string& path, const RowsChoice& choice) {
  const std::string& given = choice.label_column;
  if (!choice.labels->several || given.find(',') == given.npos) return {given};
  const std::vector<std::string> names = table_columns(path, choice.table);
  if (std::ranges::find(names, given) != names.end()) return {given};
  std::vector<std::string> out;
  for (const std::string_view name : split(given, ',')) {
    out.emplace_back(trim(name));
    const std::string& last = out.back();
    require(std::ranges::find(choice.columns, last) == choice.columns.end(), "label-column ", given,
            " names '", last, "', which is a column of texts; give columns of labels");
    require(std::ranges::count(out, last) == 1, "label-column ", given, " names '", last,
            "' twice; give each column once");
  }
  return out;
}

/// Labels, which stand in the last `count` columns, in one column and without blanks around them:
/// several as a JSON list, but where all are empty.
void join_labels(Table& table, std::size_t count) {
  const std::size_t first = table.columns.size() - count;
  for (std::size_t row = 0; row < table.lines.size(); ++row) {
    std::vector<std::string> of_row;
    for (std::size_t i = 0; i < count; ++i)
      of_row.emplace_back(trim(table.columns[first + i][row]));
    const bool none = std::ranges::all_of(of_row, &std::string::empty);
    table.columns[first][row] = count == 1 ? of_row[0] : none ? "" : label_names_json(of_row);
  }
  table.columns.resize(first + 1);
}

/// Errors: a row without a label.
void require_labels(Table& table, const std::string& path, const RowsChoice& choice) {
  const bool lines = table_format(path, choice.table) == TableFormat::JsonLines;
  for (std::size_t row = 0; row < table.lines.size(); ++row) {
    std::string& label = table.columns.back()[row];
    if (label.empty() && choice.labels->may_be_empty && !lines) label = "[]";
    if (label.empty() && !choice.tests)
      fail(Fault::Data, "'", path, "' line ", table.lines[row], ": column ",
           column_names_text({&choice.label_column, 1}),
           " has no label; give the row one, or leave it out");
  }
}

/// Columns of texts, and that of labels behind them.
TableRows load_tables(const std::vector<std::string>& paths, const RowsChoice& choice) {
  const std::vector<std::string> all = text_files(paths);
  TableRows out;
  out.labelled = have_labels(all, choice);
  std::vector<std::string> wanted = choice.columns, labels;
  if (out.labelled) labels = label_columns(all.front(), choice);
  wanted.insert(wanted.end(), labels.begin(), labels.end());
  if (labels.size() > 1) out.label_columns = labels;
  TableOptions options = choice.table;
  options.may_lack_last = out.labelled && choice.tests;
  options.last_may_be_list = out.labelled && choice.labels->several;
  for (const std::string& path : all) {
    const std::string bytes = read_contents(path);
    out.tables.push_back(parse_table(bytes, path, wanted, options));
    const Table& table = out.tables.back();
    if (!table.notice.empty()) out.notices.push_back(table.notice);
    if (out.labelled) {
      join_labels(out.tables.back(), labels.size());
      require_labels(out.tables.back(), path, choice);
    }
    out.files.push_back({path, std::ssize(bytes), 0, 0});
  }
  return out;
}

/// Calls `take(table, row)` for each row, in order.
template <typename Take>
void for_each_row(const TableRows& rows, const Take& take) {
  for (const Table& table : rows.tables) {
    for (std::int64_t row = 0; row < table.rows(); ++row)
      take(table, static_cast<std::size_t>(row));
  }
}

std::int64_t count_rows(const TableRows& rows) {
  std::int64_t out = 0;
  for (const Table& table : rows.tables) out += table.rows();
  return out;
}

std::string digest_of_rows(const TableRows& rows) {
  StreamHash hash;
  for_each_row(rows, [&](const Table& table, std::size_t row) {
    for (const std::vector<std::string>& column : table.columns) {
      hash.update(text(column[row].size(), ":"));
      hash.update(column[row]);
    }
  });
  return hash.text();
}

/// What a vocabulary is made of: the texts of the first `count` rows, a new line behind each.
std::string joined_texts(const TableRows& rows, std::size_t columns, std::int64_t count) {
  std::string out;
  for_each_row(rows, [&](const Table& table, std::size_t row) {
    if (count-- <= 0) return;
    for (std::size_t column = 0; column < columns; ++column) {
      out += table.columns[column][row];
      out += '\n';
    }
  });
  return out;
}

}  // namespace

bool have_labels(const std::vector<std::string>& paths, const RowsChoice& choice) {
  if (choice.label_column.empty() || !choice.reads_labels) return false;
  if (!choice.tests) return true;
  std::string with, without;
  for (const std::string& path : paths) {
    // Of JSON lines, each may have the key or not.
    if (table_format(path, choice.table) == TableFormat::JsonLines) return true;
    const std::vector<std::string> names = table_columns(path, choice.table);
    const std::string first = label_columns(path, choice).front();
    (std::ranges::find(names, first) == names.end() ? without : with) = path;
  }
  if (!with.empty() && !without.empty())
    fail(Fault::Data, "'", without, "' has no column ",
         column_names_text({&choice.label_column, 1}), ", and '", with,
         "', also tested on, has it; give both labels, or neither");
  return without.empty();
}

std::vector<std::int32_t> document_end(const Vocabulary& vocabulary) {
  const Tokenizer* const made = vocabulary.made_elsewhere();
  const auto end = made == nullptr ? std::nullopt : end_of_document(*made);
  if (end) return {*end};
  std::vector<std::int32_t> out;
  try {
    out = vocabulary.encode("\n");
  } catch (const Error& error) {
    throw error.with("as the new line that ends a document");
  }
  if (out.empty())
    fail(Fault::Data, "the tokenizer has no token that ends a document (eos or sep), and ",
         "drops new lines, so documents could not be separated; give one that has such a token");
  return out;
}

namespace {

/// The tokens of rows, one text behind another.
struct EncodedRows {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> ends;
  std::int64_t rows = 0, without_text = 0;  // of documents: left out
};

class RowEncoder {
 public:
  RowEncoder(const RowsChoice& choice, const Vocabulary& vocabulary)
      : columns_(choice.columns),
        documents_(choice.columns.size() == 1 && choice.label_column.empty()),
        labelled_(!choice.label_column.empty()),
        needs_texts_(choice.needs_texts),
        vocabulary_(vocabulary) {
    if (documents_) end_ = document_end(vocabulary);
  }

  /// Adds rows [first, first + count) of `rows` to `out`.
  void encode(const TableRows& rows, std::int64_t first, std::int64_t count,
              EncodedRows& out) const {
    std::int64_t at = 0;
    for (std::size_t file = 0; file < rows.tables.size(); ++file) {
      const Table& table = rows.tables[file];
      for (std::size_t row = 0; row < table.lines.size(); ++row, ++at) {
        if (at < first || at >= first + count) continue;
        if (documents_ && table.columns[0][row].empty()) {
          ++out.without_text;
          continue;
        }
        const std::size_t before = out.ids.size();
        for (std::size_t column = 0; column < columns_.size(); ++column)
          add(table, row, column, rows.files[file].path, out);
        out.without_text += labelled_ && out.ids.size() == before;
        ++out.rows;
      }
    }
  }

 private:
  void add(const Table& table, std::size_t row, std::size_t column, const std::string& path,
           EncodedRows& out) const try {
    const std::vector<std::int32_t> ids = vocabulary_.encode(table.columns[column][row]);
    if (needs_texts_ && ids.empty())
      fail(Fault::Data, "there is no text; give the row one, or leave it out");
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.ids.insert(out.ids.end(), end_.begin(), end_.end());
    out.ends.push_back(std::ssize(out.ids));
  } catch (const Error& error) {
    throw error.with(text("in column ", column_names_text({&columns_[column], 1}), ", line ",
                          table.lines[row], " of '", path, "'"));
  }

  const std::vector<std::string>& columns_;
  bool documents_, labelled_, needs_texts_;
  const Vocabulary& vocabulary_;
  std::vector<std::int32_t> end_;
};

TableParts load_both(const RowsChoice& choice) {
  TableParts out{load_tables(choice.paths, choice), {}};
  if (!choice.valid_paths.empty()) out.apart = load_tables(choice.valid_paths, choice);
  if (!choice.label_column.empty() && !choice.tests && choice.labels->leave_out != nullptr)
    choice.labels->leave_out(choice, out);
  return out;
}

NamedLabels labels_of_rows(const RowsChoice& choice, const TableParts& rows) {
  if (choice.label_column.empty()) return {};
  if (rows.train.labelled) return choice.labels->read(choice, rows);
  const auto count = static_cast<std::size_t>(count_rows(rows.train));
  return {choice.known_labels, std::vector<RowLabel>(count, choice.labels->none)};
}

Dataset encoded(const RowsChoice& choice, Vocabulary vocabulary, const TableParts& parts) {
  const auto& [train, apart] = parts;
  const RowEncoder encoder(choice, vocabulary);
  const bool split = choice.valid_paths.empty();
  const std::int64_t all = count_rows(train), trains = choice.trains(all);
  EncodedRows rows, held;
  encoder.encode(train, 0, trains, rows);
  split ? encoder.encode(train, trains, all - trains, held)
        : encoder.encode(apart, 0, count_rows(apart), held);
  if (rows.ids.empty() && !choice.tests)
    fail(Fault::Data, "no row of ", name_of(train.files), " for training has a text in column ",
         column_names_text(choice.columns), "; give more rows, or hold out fewer");
  RowTokens where{std::ssize(choice.columns), std::move(rows.ends), rows.rows};
  for (const std::int64_t end : held.ends) where.ends.push_back(std::ssize(rows.ids) + end);
  std::vector<std::string> notices = train.notices;
  notices.insert(notices.end(), apart.notices.begin(), apart.notices.end());
  if (const std::int64_t none = rows.without_text + held.without_text; none > 0)
    notices.push_back(text(counted(none, "row"), none == 1 ? " has" : " have",
                           " no text in column ", column_names_text(choice.columns),
                           choice.label_column.empty()
                               ? text(", and ", none == 1 ? "is" : "are", " skipped")
                               : ", and the model sees only special tokens for them"));
  auto [names, labels, notice] = labels_of_rows(choice, parts);
  if (!notice.empty()) notices.push_back(notice);
  if (const std::string some = notice_of_unlabelled(labels); !some.empty()) notices.push_back(some);
  Dataset out{.vocabulary = std::move(vocabulary),
              .content = Texts{stream_of(choice, std::move(rows.ids), std::move(held.ids)),
                               train.files,
                               apart.files,
                               std::move(where),
                               {}},
              .digest = digest_of_rows(train),
              .held_out_digest = split ? "" : digest_of_rows(apart),
              .label_names = std::move(names),
              .unlabelled = choice.tests && !choice.label_column.empty() &&
                            std::ranges::all_of(labels, &RowLabel::none),
              .notice = join(notices, "; ")};
  std::get<Texts>(out.content).labels = std::move(labels);
  return out;
}

}  // namespace

TokenStream stream_of(const RowsChoice& choice, std::vector<std::int32_t> train,
                      std::vector<std::int32_t> held_out) {
  return choice.tests ? TokenStream::held_out_alone(std::move(held_out))
                      : TokenStream(std::move(train), held_out);
}

Dataset load_rows(const RowsChoice& choice, const VocabularyChoice& vocabulary) {
  const TableParts both = load_both(choice);
  const TableRows& rows = both.train;
  const bool learns = vocabulary.kind == VocabularyKind::Bpe,
             counts = vocabulary.kind == VocabularyKind::Characters;
  const std::int64_t count = learns && choice.valid_paths.empty()
                                 ? count_to_train(count_rows(rows), choice.held_out)
                             : learns || counts ? count_rows(rows)
                                                : 0;  // the others are not made of the texts
  return encoded(
      choice, Vocabulary::of(vocabulary, joined_texts(rows, choice.columns.size(), count)), both);
}

Dataset load_rows(const RowsChoice& choice, const Vocabulary& vocabulary) {
  const TableParts both = load_both(choice);
  return encoded(choice, vocabulary, both);
}

std::string rows_digest(const RowsChoice& choice) {
  return digest_of_rows(load_both(choice).train);
}

}  // namespace tessera
