/// tokenize TOKENIZER TEXT [THREADS]: how fast a text is encoded. bench/tokenizing.py compares it.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/files/file.h"
#include "tessera/tokenizers/tokenizer.h"

namespace {

/// About 10 kB each, to the end of a line.
std::vector<std::string> documents(const std::string& text) {
  constexpr std::size_t kBytes = 10'000;
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', std::min(at + kBytes, text.size() - 1));
    const std::size_t end = newline == std::string::npos ? text.size() : newline + 1;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) try {
  tessera::require(argc >= 3, "usage: tokenize TOKENIZER TEXT [THREADS]");
  const tessera::Tokenizer tokenizer = tessera::Tokenizer::load(argv[1]);
  const std::string text = tessera::read_file(argv[2]);
  const std::vector<std::string> texts = documents(text);
  const int threads = argc > 3 ? std::stoi(argv[3]) : 1;
  const auto begin = std::chrono::steady_clock::now();
  const auto ids = tokenizer.encode_batch(texts, threads);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  std::size_t count = 0;
  for (const auto& each : ids) count += each.size();
  std::printf("%.1f MB/s %zu ids\n", static_cast<double>(text.size()) / time.count() / 1e6, count);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
