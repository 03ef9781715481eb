/// What rules must admit at least: tests/ops/admits.txt, a line per row. A rule that is made
/// `whole`, or needs an exchange of statistics where it needed none, fails here; one that admits
/// more does not, and neither does a new op: TESSERA_ACCEPT=1 writes what is admitted today.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "ops/sharded.h"
#include "repo_file.h"

namespace tessera::test {

namespace {

const std::string kFile = repo_file("tests/ops/admits.txt");

constexpr const char* kHead =
    "# The factors that each row's rule must admit shards of, beside others: as they are, or with\n"
    "# what it costs: sum, max, min, one (some result is left to be reduced), stat.\n"
    "# tests/ops/admits_test.cpp reads this; TESSERA_ACCEPT=1 writes it.\n";

/// "k:sum", "d:stat", "m"
std::string word(const Factors& factors, int f) {
  const Factor& factor = factors.list[static_cast<std::size_t>(f)];
  if (factor.kind == FactorKind::Stat) return factor.name + ":stat";
  for (int j = 0; j < static_cast<int>(factors.outs.size()); ++j) {
    constexpr const char* kMonoids[] = {":sum", ":max", ":min", ":one"};
    if (factors.reduces(f, j))
      return factor.name + kMonoids[static_cast<std::size_t>(factors.monoid(f))];
  }
  return factor.name;
}

/// Each factor of more than one element that some sharding of the tests' meshes shards.
std::vector<std::string> words_of(const Factors& factors) {
  std::set<int> found;
  std::vector<Mesh> meshes = meshes_of_compound_dims(factors);
  meshes.push_back(Mesh({{"a", 2}}));
  for (const Mesh& mesh : meshes) {
    for (const Assignment& assignment : admitted(factors, mesh)) {
      for (const auto& [f, axes] : assignment) found.insert(f);
    }
  }
  std::vector<std::string> out;
  for (const int f : found) {
    if (factors.list[static_cast<std::size_t>(f)].size > 1) out.push_back(word(factors, f));
  }
  return out;
}

std::string missing(const std::vector<std::string>& wanted, const std::vector<std::string>& have) {
  std::vector<std::string> out;
  for (const std::string& one : wanted) {
    if (std::find(have.begin(), have.end(), one) == have.end()) out.push_back(one);
  }
  return join(out);
}

std::map<std::string, Factors> rules() {
  std::map<std::string, Factors> out;
  for (const Case& c : all_cases()) out.emplace(title(c), subject_of(c).factors());
  return out;
}

/// By title, what the file asks for.
std::map<std::string, std::vector<std::string>> asked() {
  std::map<std::string, std::vector<std::string>> out;
  std::ifstream file(kFile);
  EXPECT_TRUE(file.is_open()) << kFile;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t bar = line.rfind(" | ");
    if (bar == std::string::npos) {
      ADD_FAILURE() << kFile << ": '" << line << "' is not like 'softmax | d0 d1:stat'";
      continue;
    }
    out[line.substr(0, bar)] = split(line.substr(bar + 3), ' ');
  }
  return out;
}

void accept() {
  std::ofstream file(kFile);
  file << kHead;
  for (const Case& c : all_cases()) {
    const std::vector<std::string> words = words_of(subject_of(c).factors());
    if (!words.empty()) file << title(c) << " | " << join(words, " ") << "\n";
  }
}

}  // namespace

TEST(Admits, WhatTheFileAsksFor) {
  if (std::getenv("TESSERA_ACCEPT") != nullptr) accept();
  const std::map<std::string, Factors> known = rules();
  const auto wanted = asked();
  for (const auto& [title, words] : wanted) {
    const auto found = known.find(title);
    if (found == known.end()) {
      ADD_FAILURE() << "no row is called '" << title << "'; TESSERA_ACCEPT=1 writes the file anew";
      continue;
    }
    EXPECT_EQ(missing(words, words_of(found->second)), "")
        << "not admitted by " << title << ", " << to_text(found->second)
        << "; if this is what it should be: TESSERA_ACCEPT=1 writes it to " << kFile;
  }
  EXPECT_GT(wanted.size(), 150U);
}

/// Every rule in which a factor is made `whole` is missed.
TEST(Admits, NoticesWholeFactors) {
  const std::map<std::string, Factors> known = rules();
  int noticed = 0;
  for (const auto& [title, words] : asked()) {
    const auto found = known.find(title);
    if (found == known.end()) continue;
    for (int f = 0; f < static_cast<int>(found->second.list.size()); ++f) {
      Factors rule = found->second;
      const std::string one = word(rule, f);
      if (std::find(words.begin(), words.end(), one) == words.end()) continue;
      rule.list[static_cast<std::size_t>(f)].kind = FactorKind::Whole;
      EXPECT_NE(missing(words, words_of(rule)).find(one), std::string::npos)
          << title << ", " << one;
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 300);
}

}  // namespace tessera::test
