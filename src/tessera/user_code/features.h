#pragma once
/// Features of samples: how many numbers they have, what they are called in errors, and whether
/// those of several samples fit each other.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tessera/user_code/map_dataset.h"

namespace tessera {

/// The numbers of a feature, whether it is a row or one number.
inline std::span<const std::int32_t> numbers_of(const std::int32_t& one) { return {&one, 1}; }
inline std::span<const float> numbers_of(const float& one) { return {&one, 1}; }
template <typename T>
std::span<const T> numbers_of(const std::vector<T>& row) {
  return row;
}
/// i32 or f32.
template <typename Value>
using NumberOf =
    std::remove_const_t<typename decltype(numbers_of(std::declval<const Value&>()))::element_type>;

std::size_t count_of(const Feature& feature);
bool is_row(const Feature& feature);
/// "a row of 64 i32", "a number of f32"
std::string to_text(const Feature& feature);
/// "input_ids, labels"
std::string feature_names(const Features& features);
/// Of the usual names of labels: what fills up a row of them is kIgnoredLabel.
bool is_label(std::string_view name);

/// Whether rows have to be of one length.
enum class RowLengths { Same, Any };
/// The same features, of the same types.
bool same_kinds(const Features& a, const Features& b, RowLengths lengths = RowLengths::Same);
/// Says how a sample differs from the one that it should be like. `where`: what returns both.
[[noreturn]] void refuse_other_kinds(const std::string& whose, const Features& sample,
                                     std::string_view like, const Features& other,
                                     RowLengths lengths = RowLengths::Same,
                                     std::string_view where = "get()");

}  // namespace tessera
