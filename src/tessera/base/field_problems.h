#pragma once
/// What is wrong with options, a sentence each, and which options it is about.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

struct FieldProblem {
  std::string what;
  /// Names of the flags whose values are judged; they live as long as the program. If one of them
  /// was refused before, this problem may be no more than a consequence.
  std::vector<std::string_view> fields;
};

class FieldProblems {
 public:
  void add(std::initializer_list<std::string_view> fields, std::string what) {
    list_.push_back({std::move(what), fields});
  }

  void add(FieldProblem problem) { list_.push_back(std::move(problem)); }

  bool empty() const { return list_.empty(); }
  std::size_t size() const { return list_.size(); }
  auto begin() const { return list_.begin(); }
  auto end() const { return list_.end(); }
  /// The sentences alone.
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const FieldProblem& problem : list_) out.push_back(problem.what);
    return out;
  }

 private:
  std::vector<FieldProblem> list_;
};

}  // namespace tessera
