#include "tessera/apps/glue_table.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>

#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/data/label_rules.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

struct GlueLabel {
  std::string_view name, written;
};
/// The labels of GLUE's data sets, as its files and transformers' run_glue call them.
const std::vector<std::vector<GlueLabel>>& glue_labels() {
  static const std::vector<std::vector<GlueLabel>> out = {
      {{"0", "0"}, {"1", "1"}},
      {{"unacceptable", "0"}, {"acceptable", "1"}},
      {{"negative", "0"}, {"positive", "1"}},
      {{"not_equivalent", "0"}, {"equivalent", "1"}},
      {{"not_duplicate", "0"}, {"duplicate", "1"}},
      {{"entailment", "entailment"}, {"not_entailment", "not_entailment"}},
      {{"entailment", "entailment"}, {"neutral", "neutral"}, {"contradiction", "contradiction"}},
  };
  return out;
}

/// "p(yes)": the label's name is yes.
std::set<std::string> labels_of(const PredictionTable& predicted) {
  std::set<std::string> out;
  for (const std::string& column : predicted.columns) {
    if (column.starts_with("p(") && column.ends_with(")"))
      out.insert(column.substr(2, column.size() - 3));
  }
  return out;
}

/// What GLUE calls each label of the model.
std::map<std::string, std::string> names_of(const std::set<std::string>& labels) {
  for (const std::vector<GlueLabel>& each : glue_labels()) {
    std::map<std::string, std::string> out;
    for (const GlueLabel& label : each) out.emplace(label.name, label.written);
    if (labels.size() == out.size() &&
        std::ranges::all_of(labels, [&](const std::string& label) { return out.contains(label); }))
      return out;
  }
  std::vector<std::string> known;
  for (const std::vector<GlueLabel>& each : glue_labels()) {
    std::vector<std::string> names;
    for (const GlueLabel& label : each) names.emplace_back(label.name);
    known.push_back(join(names, " and "));
  }
  fail(Fault::Usage, "--format glue: the model's labels are ",
       join(std::vector<std::string>(labels.begin(), labels.end())), "; GLUE's are ",
       join(known, ", or "),
       "; name the model's so in id2label of config.json, or leave --format out");
}

}  // namespace

PredictionTable glue_table(const PredictionTable& predicted, const ModelConfig& model) {
  const bool number = has_task(model, kRegression) && model.classes == 1;
  require(number || has_task(model, kSequenceClassification), "--format glue is for task ",
          kSequenceClassification, ", or ", kRegression, " of one number; the model's task is ",
          family_task(model).name, " with ", model.classes, " labels");
  const std::map<std::string, std::string> names =
      number ? std::map<std::string, std::string>() : names_of(labels_of(predicted));
  const auto at = static_cast<std::size_t>(std::ranges::find(predicted.columns, "prediction") -
                                           predicted.columns.begin());
  check(at < predicted.columns.size(), "a table without predictions");
  PredictionTable out{{"index", "prediction"}, {}};
  for (std::size_t row = 0; row < predicted.rows.size(); ++row) {
    const std::string& cell = predicted.rows[row][at];
    if (number) {
      const std::optional<double> value = finite_number(cell);
      if (!value)
        fail(Fault::Data, "--format glue: the prediction of row ", row, " is ", cell,
             ", which is no number; the model has diverged");
      out.rows.push_back({text(row), format("%.3f", std::clamp(*value, 0.0, 5.0))});
    } else {
      out.rows.push_back({text(row), names.at(cell)});
    }
  }
  return out;
}

}  // namespace tessera
