#pragma once
/// Damaged inputs from good ones: what driver.cpp does where there is no libFuzzer.

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tessera::fuzz {

/// A stream of inputs, the same for the same seed and corpus.
class Mutator {
 public:
  /// `corpus` is not empty; no input is longer than `max_bytes`.
  Mutator(std::vector<std::string> corpus, std::uint64_t seed, std::size_t max_bytes);

  /// An input of the corpus, changed in one to eight places.
  std::string next();
  /// Later inputs may begin from this one, which was accepted: damage then goes deeper than one
  /// step from the corpus.
  void learn(std::string input);

 private:
  std::size_t below(std::size_t limit) { return limit == 0 ? 0 : random_() % limit; }
  const std::string& any() { return pool_[below(pool_.size())]; }
  void change(std::string& input);
  void change_bytes(std::string& input, std::size_t at);
  void change_range(std::string& input, std::size_t at);
  void change_word(std::string& input, std::size_t at);
  void change_line(std::string& input, std::size_t at);

  std::mt19937_64 random_;
  std::size_t max_bytes_, num_seeds_;
  std::vector<std::string> pool_;   // the corpus, then what was learnt
  std::vector<std::string> words_;  // of the corpus
};

}  // namespace tessera::fuzz
