#pragma once
/// Labels of rows: names in a column, which a model predicts by number.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/tensor/ignored_label.h"

namespace tessera {

/// What is to be predicted of the words of a row.
struct WordLabels {
  std::vector<std::int32_t> of_tokens = {};  // for each token, or kIgnoredLabel
  std::vector<bool> has_token = {};          // for each word
};

/// What is to be predicted of a row, the number of a class, or of its words, or numbers.
struct RowLabel {
  std::variant<std::int32_t, std::shared_ptr<const WordLabels>, std::vector<float>> of =
      kIgnoredLabel;

  /// kIgnoredLabel: it is not known, or none of the row.
  std::int32_t number() const {
    const std::int32_t* const found = std::get_if<std::int32_t>(&of);
    return found == nullptr ? kIgnoredLabel : *found;
  }
  /// nullptr: its words have no labels.
  const WordLabels* words() const {
    const auto* const found = std::get_if<std::shared_ptr<const WordLabels>>(&of);
    return found == nullptr ? nullptr : found->get();
  }
  /// Scores, or of each of several labels 1 or 0. Empty: it is none of these.
  std::span<const float> numbers() const {
    const auto* const found = std::get_if<std::vector<float>>(&of);
    return found == nullptr ? std::span<const float>() : *found;
  }
  /// It is not known what is to be predicted.
  bool none() const { return words() == nullptr && numbers().empty() && number() == kIgnoredLabel; }
};

/// How labels in a column of a table are read (data/label_kind.h).
struct LabelKind;
extern const LabelKind kClassLabels;   // names of classes
extern const LabelKind kNumberLabels;  // numbers: one, or as many in each row
extern const LabelKind kLabelSets;     // of each row any number of names

/// RowLabel::number of each.
std::vector<std::int32_t> label_numbers(std::span<const RowLabel> labels);

/// What the user is to know of rows without a label, where some have one and are tested on.
std::string notice_of_unlabelled(std::span<const RowLabel> labels);

/// Each name once: by their values where all are whole numbers (2, 10, 10.0), else as texts.
std::vector<std::string> sorted_label_names(std::span<const std::string> labels);

/// The names by which data is labelled.
struct ChosenLabels {
  std::vector<std::string> names;
  bool known = false;  // they are those of a model
};
/// `known`, those of a model, where `labels` has no others (LabelNumbers), or where `keeps` says
/// so; else sorted_label_names of `labels`.
ChosenLabels chosen_label_names(std::span<const std::string> labels,
                                std::span<const std::string> known, bool keeps);

/// Numbers of labels by their names.
class LabelNumbers {
 public:
  explicit LabelNumbers(std::span<const std::string> names);
  /// That of the name, or else of the one name that differs in letter case alone; -1: there is
  /// none.
  std::int32_t of(std::string_view name) const;

 private:
  std::map<std::string, std::int32_t, std::less<>> exact_, folded_;  // folded: -1: of several
};

/// Names of labels as JSON, and back. Errors: Fault::Checkpoint, naming `where`: no list of texts
/// that are all different.
std::string label_names_json(std::span<const std::string> names);
std::vector<std::string> parse_label_names(std::string_view json, const std::string& where);

/// LABEL_0, LABEL_1, ...: what transformers calls labels that nobody named.
bool are_unnamed_labels(std::span<const std::string> names);

/// "'0', '1' and 3 more": for messages.
std::string label_names_text(std::span<const std::string> names);

}  // namespace tessera
