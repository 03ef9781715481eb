#pragma once
/// What labels of data are, before a model learns them: classes, or something that only looks so.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The number that a text is; none: it is no finite one.
std::optional<double> finite_number(std::string_view name);

/// The labels among these that say that a row has none, as files write it: -1 (the library
/// datasets) and - (SNLI). They are labels like others where the model of `known` knows them; - is
/// one beside +, and -1 beside whole numbers that do not count from 0, as in {-1, 1}.
std::vector<std::string> words_for_no_label(std::span<const std::string> labels,
                                            std::span<const std::string> known);

/// Those of them that are left out of rows that train, in which `labels` are. Where the user gave
/// as many `classes` as there are labels with them, they are labels like others. Errors:
/// Fault::Data, beginning with `where`: they are more than one in 20 of 20 rows or more, as a class
/// is and a missing label is not, and neither `classes` nor `known`, which has all others, says
/// what they are.
std::vector<std::string> left_out_labels(std::span<const std::string> labels,
                                         std::span<const std::string> known, std::int64_t classes,
                                         const std::string& where);

/// The same in rows to test on: all of these words, and no text, which `known` has not.
std::vector<std::string> words_for_no_label(std::span<const std::string> known);

/// Errors: Fault::Data, beginning with `where` ("'a.tsv', column 'score'"): `names`, those of the
/// labels of `count` rows (or words: `noun`), are no classes: scores with fractions; nearly as many
/// as rows; a single one. `classes`: what the user gave as their number, which permits the last
/// two, as fewer than 10 rows do; 0: nothing.
void require_classes(std::span<const std::string> names, std::int64_t count, const char* noun,
                     std::int64_t classes, const std::string& where);

}  // namespace tessera
