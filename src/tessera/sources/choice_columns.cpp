#include "tessera/sources/choice_columns.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// Sources: SWAG, HellaSwag, CosmosQA, RACE, ARC, CommonsenseQA, OpenBookQA, MMLU, PIQA, COPA, as
/// the library datasets has them. Of two names, the second begins each choice.
constexpr std::string_view kUsualChoiceTexts[] = {"sent1,sent2",      "article,question",
                                                  "passage,question", "context,question",
                                                  "premise,question", "ctx",
                                                  "question.stem",    "question",
                                                  "question_stem",    "context",
                                                  "premise",          "goal",
                                                  "sentence",         "text"};
constexpr std::string_view kUsualChoiceLists[] = {"choices", "endings", "options",
                                                  "question.choices", "answers"};
/// Names of columns of one choice each, before a number or a letter: ending0, ending1, ...
constexpr std::string_view kUsualChoiceStems[] = {"ending", "choice", "answer", "option", "sol"};
constexpr std::string_view kUsualChoiceLabels[] = {"label", "answerKey", "answer", "labels",
                                                   "gold_label"};

/// The columns of a table.
class ChoiceTable {
 public:
  explicit ChoiceTable(std::vector<std::string> names) : names_(std::move(names)) {}

  bool has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }
  bool has_all(std::string_view names) const {
    return std::ranges::all_of(split(names, ','), [&](std::string_view one) { return has(one); });
  }
  const std::vector<std::string>& names() const { return names_; }

  /// "ending0,ending1"; empty: there are no two. They count from 0, 1, A or a.
  std::string of_stem(std::string_view stem) const {
    for (const char first : {'0', '1', 'A', 'a'}) {
      std::vector<std::string> out;
      for (char mark = first; has(text(stem, mark)); ++mark) out.push_back(text(stem, mark));
      if (out.size() >= 2) return join(out, ",");
    }
    return "";
  }
  std::string choices() const {
    for (const std::string_view name : kUsualChoiceLists)
      if (has(name)) return std::string(name);
    for (const std::string_view stem : kUsualChoiceStems)
      if (std::string found = of_stem(stem); !found.empty()) return found;
    return "";
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

bool has_choice_columns(const RunConfig& config) {
  return !config.text_column.empty() && !config.text_pair_column.empty() &&
         !config.label_column.empty();
}

void find_choice_columns(RunConfig& config, const std::string& path, const TableOptions& options,
                         bool may_lack_labels) {
  if (has_choice_columns(config)) return;
  const ChoiceTable table(table_columns(path, options));
  const auto lacks = [&](std::string_view what, std::string_view field, const auto& usual) {
    fail(Fault::Data, "'", path, "' has no column of ", what, " with a usual name (", usual,
         "); its columns are ", column_names_text(table.names()), ": select it with ", field);
  };
  if (config.text_column.empty()) {
    const auto found = std::ranges::find_if(
        kUsualChoiceTexts, [&](std::string_view names) { return table.has_all(names); });
    if (found == std::end(kUsualChoiceTexts))
      lacks("texts", "text-column", "sent1, question, context");
    config.text_column = *found;
  }
  if (config.text_pair_column.empty()) {
    config.text_pair_column = table.choices();
    if (config.text_pair_column.empty())
      lacks("choices", "text-pair-column", "choices, endings, options, or ending0, ending1, ...");
  }
  if (config.label_column.empty()) {
    const auto found = std::ranges::find_if(kUsualChoiceLabels,
                                            [&](std::string_view name) { return table.has(name); });
    const bool none = found == std::end(kUsualChoiceLabels);
    if (none && !may_lack_labels)
      lacks("labels", "label-column", "label, answerKey, answer, labels, gold_label");
    config.label_column = none ? kUsualChoiceLabels[0] : *found;
  }
}

}  // namespace tessera
