#include "tessera/user_code/features.h"

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tensor/dtype.h"

namespace tessera {

namespace {

bool same_kind(const Feature& a, const Feature& b, RowLengths lengths) {
  return a.index() == b.index() && (lengths == RowLengths::Any || count_of(a) == count_of(b));
}

}  // namespace

std::size_t count_of(const Feature& feature) {
  return std::visit([](const auto& value) { return numbers_of(value).size(); }, feature);
}

bool is_row(const Feature& feature) {
  return std::holds_alternative<std::vector<std::int32_t>>(feature) ||
         std::holds_alternative<std::vector<float>>(feature);
}

std::string to_text(const Feature& feature) {
  const auto dtype = std::visit(
      [](const auto& value) { return dtype_of<NumberOf<std::remove_cvref_t<decltype(value)>>>(); },
      feature);
  return is_row(feature) ? text("a row of ", count_of(feature), " ", dtype)
                         : text("a number of ", dtype);
}

std::string feature_names(const Features& features) {
  std::vector<std::string> out;
  for (const auto& [name, value] : features) out.push_back(name);
  return out.empty() ? "none" : join(out);
}

bool is_label(std::string_view name) { return name == "label" || name == "labels"; }

bool same_kinds(const Features& a, const Features& b, RowLengths lengths) {
  return std::ranges::equal(a, b, [&](const auto& its, const auto& other) {
    return its.first == other.first && same_kind(its.second, other.second, lengths);
  });
}

void refuse_other_kinds(const std::string& whose, const Features& sample, std::string_view like,
                        const Features& other, RowLengths lengths, std::string_view where) {
  if (!std::ranges::equal(sample, other, {}, &Features::value_type::first,
                          &Features::value_type::first))
    fail(Fault::Data, whose, " has the features ", feature_names(sample), ", but ", like, " has ",
         feature_names(other), "; ", where, " must return the same features for all samples");
  const auto differing = std::ranges::find_if(sample, [&](const auto& its) {
    return !same_kind(its.second, other.at(its.first), lengths);
  });
  const auto& [name, feature] = *differing;
  fail(Fault::Data, whose, ": feature '", name, "' is ", to_text(feature), ", but in ", like,
       " it is ", to_text(other.at(name)), "; pad or cut it in ", where);
}

}  // namespace tessera
