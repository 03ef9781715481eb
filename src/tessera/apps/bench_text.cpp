#include "tessera/apps/bench_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/utf8.h"
#include "tessera/corpora/corpus.h"
#include "tessera/files/file.h"

namespace tessera {

void write_bench_text(const std::string& path) {
  try {
    prepare_corpus({.sources = {"licences"}, .output = path});
  } catch (const Error& error) {
    throw error.with("in the text bench uses without --data; give --data FILE");
  }
  const std::string whole = read_file(path, Fault::Resource);
  std::map<char32_t, std::int64_t> counts;
  const auto each = [&](const auto& f) {
    for (std::size_t at = 0; at < whole.size();) {
      const CodePoint c = code_point_at(whole, at);
      f(c.value);
      at += static_cast<std::size_t>(c.size);
    }
  };
  each([&](char32_t c) { ++counts[c]; });
  std::vector<std::pair<std::int64_t, char32_t>> by_count;
  for (const auto& [c, count] : counts) by_count.emplace_back(-count, c);
  std::ranges::sort(by_count);
  by_count.resize(std::min<std::size_t>(by_count.size(), kBenchCharacters));
  std::set<char32_t> common;
  for (const auto& [count, c] : by_count) common.insert(c);
  std::string out;
  each([&](char32_t c) {
    if (common.contains(c)) append_utf8(out, c);
  });
  write_atomically(path, out);
}

}  // namespace tessera
