#include "tessera/data/choice_rows.h"

#include <algorithm>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/text.h"
#include "tessera/data/choices.h"
#include "tessera/data/dataset.h"
#include "tessera/files/table_file.h"
#include "tessera/files/unpack.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {

namespace {

struct ChoiceRow {
  std::vector<std::string> texts;  // the first, and the choices
  std::int32_t label = kIgnoredLabel;
  std::string place;  // "line 3 of 'a.csv'"
};

struct LoadedChoices {
  std::vector<ChoiceRow> rows;
  std::vector<TextFile> files;
  std::vector<std::string> notices;

  std::int64_t most() const {  // choices of a row
    std::size_t out = 1;
    for (const ChoiceRow& row : rows) out = std::max(out, row.texts.size());
    return static_cast<std::int64_t>(out) - 1;
  }
};

std::vector<std::string> wanted_columns(const RowsChoice& choice, bool labelled) {
  std::vector<std::string> out = choice.columns;
  out.insert(out.end(), choice.choice_columns.begin(), choice.choice_columns.end());
  if (labelled) out.push_back(choice.label_column);
  for (const std::string& name : out)
    require(std::ranges::count(out, name) == 1, "column ", column_names_text({&name, 1}),
            " is named twice by text-column, text-pair-column and label-column; give each once");
  return out;
}

/// Takes rows from a table.
class ChoiceReader {
 public:
  ChoiceReader(const RowsChoice& choice, const Table& table, const std::string& path, bool labelled)
      : choice_(choice), table_(table), path_(path), labelled_(labelled) {}

  ChoiceRow read(std::size_t row) const {
    const RowChoices choices = choices_at(row);
    require_choices(choices, line(row));
    const std::int64_t count = std::ssize(choices.texts);
    if (choice_.most_choices > 0 && count > choice_.most_choices)
      fail(Fault::Data, line(row), " has ", count, " choices, and texts is ", choice_.most_choices,
           "; give --texts ", count, " or more, or leave the row out");
    ChoiceRow out{{table_.columns[0][row]}, kIgnoredLabel, place(row)};
    std::string begin;
    for (std::size_t i = 1; i < choice_.columns.size(); ++i)
      if (const std::string& part = table_.columns[i][row]; !part.empty()) begin += part + " ";
    for (const std::string& one : choices.texts) out.texts.push_back(begin + one);
    if (labelled_) out.label = label_at(row, choices);
    return out;
  }

 private:
  std::string line(std::size_t row) const { return text("'", path_, "' line ", table_.lines[row]); }
  std::string place(std::size_t row) const {
    return text("line ", table_.lines[row], " of '", path_, "'");
  }
  std::string column(std::size_t row, const std::string& name) const {
    return text(line(row), ": column ", column_names_text({&name, 1}));
  }
  RowChoices choices_at(std::size_t row) const {
    const std::size_t first = choice_.columns.size(), count = choice_.choice_columns.size();
    if (count == 1)
      return choices_of(table_.columns[first][row], column(row, choice_.choice_columns[0]));
    RowChoices out;
    for (std::size_t i = 0; i < count; ++i) out.texts.push_back(table_.columns[first + i][row]);
    while (!out.texts.empty() && trim(out.texts.back()).empty()) out.texts.pop_back();
    return out;
  }
  std::int32_t label_at(std::size_t row, const RowChoices& choices) const {
    const std::string where = column(row, choice_.label_column);
    const auto out = right_choice(choices, table_.columns.back()[row], where);
    if (!out && !choice_.tests)
      fail(Fault::Data, where, " has no label; give the row one, or leave it out");
    return out.value_or(kIgnoredLabel);
  }

  const RowsChoice& choice_;
  const Table& table_;
  const std::string& path_;
  bool labelled_;
};

LoadedChoices load_choice_files(const std::vector<std::string>& paths, const RowsChoice& choice) {
  LoadedChoices out;
  if (paths.empty()) return out;
  const std::vector<std::string> all = text_files(paths);
  const bool labelled = have_labels(all, choice);
  const std::vector<std::string> wanted = wanted_columns(choice, labelled);
  TableOptions options = choice.table;
  options.may_lack_last = labelled && choice.tests;
  if (choice.choice_columns.size() == 1) options.nested = choice.choice_columns;
  for (const std::string& path : all) {
    const std::string bytes = read_contents(path);
    const Table table = parse_table(bytes, path, wanted, options);
    if (!table.notice.empty()) out.notices.push_back(table.notice);
    const ChoiceReader reader(choice, table, path, labelled);
    for (std::size_t row = 0; row < table.lines.size(); ++row) out.rows.push_back(reader.read(row));
    out.files.push_back({path, std::ssize(bytes), 0, 0});
  }
  return out;
}

std::string digest_of_choices(const LoadedChoices& choices) {
  StreamHash hash;
  for (const ChoiceRow& row : choices.rows) {
    for (const std::string& one : row.texts) {
      hash.update(text(one.size(), ":"));
      hash.update(one);
    }
    hash.update(text(row.texts.size(), " ", row.label));
  }
  return hash.text();
}

struct EncodedChoices {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> ends;
};

/// Each row as so many texts; those that it lacks are empty.
void encode_choices(std::span<const ChoiceRow> rows, std::int64_t columns,
                    const Vocabulary& vocabulary, EncodedChoices& out,
                    std::vector<RowLabel>& labels) {
  for (const ChoiceRow& row : rows) {
    try {
      for (std::int64_t i = 0; i < columns; ++i) {
        if (i < std::ssize(row.texts)) {
          const std::vector<std::int32_t> ids =
              vocabulary.encode(row.texts[static_cast<std::size_t>(i)]);
          if (ids.empty())
            fail(Fault::Data,
                 i == 0 ? std::string("the text") : text("choice ", i - 1, ", from 0,"),
                 " has no token; give it a text, or leave the row out");
          out.ids.insert(out.ids.end(), ids.begin(), ids.end());
        }
        out.ends.push_back(std::ssize(out.ids));
      }
    } catch (const Error& error) {
      throw error.with(text("in ", row.place));
    }
    labels.push_back({row.label});
  }
}

Dataset encoded_choices(const RowsChoice& choice, Vocabulary vocabulary, const LoadedChoices& train,
                        const LoadedChoices& apart) {
  const std::int64_t all = std::ssize(train.rows), trains = choice.trains(all),
                     columns = 1 + std::max(train.most(), apart.most());
  const std::span<const ChoiceRow> rows(train.rows);
  EncodedChoices first, held;
  std::vector<RowLabel> labels;
  encode_choices(rows.first(static_cast<std::size_t>(trains)), columns, vocabulary, first, labels);
  encode_choices(choice.valid_paths.empty() ? rows.subspan(static_cast<std::size_t>(trains))
                                            : std::span<const ChoiceRow>(apart.rows),
                 columns, vocabulary, held, labels);
  RowTokens where{columns, std::move(first.ends), trains};
  for (const std::int64_t end : held.ends) where.ends.push_back(std::ssize(first.ids) + end);
  std::vector<std::string> notices = train.notices;
  notices.insert(notices.end(), apart.notices.begin(), apart.notices.end());
  if (const std::string some = notice_of_unlabelled(labels); !some.empty()) notices.push_back(some);
  Dataset out{.vocabulary = std::move(vocabulary),
              .content = Texts{stream_of(choice, std::move(first.ids), std::move(held.ids)),
                               train.files,
                               apart.files,
                               std::move(where),
                               {}},
              .digest = digest_of_choices(train),
              .held_out_digest = choice.valid_paths.empty() ? "" : digest_of_choices(apart),
              .label_names = {},
              .unlabelled = choice.tests && std::ranges::all_of(labels, &RowLabel::none),
              .notice = join(notices, "; ")};
  std::get<Texts>(out.content).labels = std::move(labels);
  return out;
}

/// What a vocabulary is made of: texts of the first `count` rows, a new line behind each.
std::string joined_choices(const LoadedChoices& choices, std::int64_t count) {
  std::string out;
  for (const ChoiceRow& row : std::span(choices.rows).first(static_cast<std::size_t>(count)))
    for (const std::string& one : row.texts) out += one + "\n";
  return out;
}

}  // namespace

Dataset load_choices(const RowsChoice& choice, const VocabularyChoice& vocabulary) {
  const LoadedChoices train = load_choice_files(choice.paths, choice);
  const std::int64_t all = std::ssize(train.rows);
  const std::int64_t count = vocabulary.kind == VocabularyKind::Bpe          ? choice.trains(all)
                             : vocabulary.kind == VocabularyKind::Characters ? all
                                                                             : 0;
  return encoded_choices(choice, Vocabulary::of(vocabulary, joined_choices(train, count)), train,
                         load_choice_files(choice.valid_paths, choice));
}

Dataset load_choices(const RowsChoice& choice, const Vocabulary& vocabulary) {
  const LoadedChoices train = load_choice_files(choice.paths, choice);
  return encoded_choices(choice, vocabulary, train, load_choice_files(choice.valid_paths, choice));
}

std::string choices_digest(const RowsChoice& choice) {
  return digest_of_choices(load_choice_files(choice.paths, choice));
}

}  // namespace tessera
