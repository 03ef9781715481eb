#include "tessera/config/problems.h"

#include <algorithm>
#include <span>

namespace tessera {

void Problems::add(const Error& problem, const Fields& judged) {
  const auto refused = [&](std::string_view field) { return refused_.contains(field); };
  if (closed_ || std::ranges::any_of(judged, refused)) return;
  if (known_.emplace(problem.what()).second) list_.push_back(problem);
}

void Problems::add(const FieldProblems& problems, std::string_view before) {
  for (const FieldProblem& problem : problems) add(text(before, problem.what), problem.fields);
}

void Problems::raise() const {
  if (list_.empty()) return;
  if (list_.size() == 1) throw list_.front();
  constexpr std::size_t kMostTold = 50;
  std::string all = text(list_.size(), " problems, nothing was started:");
  for (const Error& error : std::span(list_).first(std::min(list_.size(), kMostTold))) {
    all += "\n  ";
    for (const char c : std::string_view(error.what())) {
      all += c;
      if (c == '\n') all += "  ";  // what belongs to one problem stays under it
    }
  }
  if (list_.size() > kMostTold) all += text("\n  and ", list_.size() - kMostTold, " more");
  throw Error(list_.front().fault(), all);
}

}  // namespace tessera
