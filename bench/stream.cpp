/// How fast a stream of texts is read and encoded, and in how much memory: all files once, without a
/// model. Prints a line of JSON.
///
/// Run:    build/stream FILE... [--column NAME] [--tokenizer PATH] [--workers N]
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/data/streamed_text.h"

int main(int argc, char** argv) try {
  using namespace tessera;
  StreamChoice choice{.sources = {{}}};
  std::string tokenizer;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--column") {
      choice.column = value;
    } else if (word == "--tokenizer") {
      tokenizer = value;
    } else if (word == "--workers") {
      choice.workers = std::atoll(value.c_str());
    } else {
      choice.sources[0].push_back(word);
      continue;
    }
    ++i;
  }
  choice.sources = {text_files(choice.sources[0])};
  TokenizerChoice made;
  made.path = tokenizer;
  const StreamedText texts(choice, tokenizer.empty() ? Vocabulary::bytes()
                                                     : Vocabulary::tokenizer(load_tokenizer(made)));
  const auto begin = std::chrono::steady_clock::now();
  const StreamTally all = texts.read_once();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  rusage used = {};
  ::getrusage(RUSAGE_SELF, &used);
  std::printf(
      "{\"files\": %lld, \"bytes\": %lld, \"tokens\": %lld, \"seconds\": %.3f, \"mb_per_s\": %.1f, "
      "\"tokens_per_s\": %.0f, \"peak_rss_bytes\": %lld}\n",
      static_cast<long long>(all.files), static_cast<long long>(all.file_bytes),
      static_cast<long long>(all.tokens), seconds,
      static_cast<double>(all.file_bytes) / 1e6 / seconds,
      static_cast<double>(all.tokens) / seconds, static_cast<long long>(used.ru_maxrss) * 1024);
} catch (const tessera::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
