/// JSON lines: the texts of a key, as sentences, which together are the text but for blanks.

#include <algorithm>

#include "fuzz/target.h"
#include "tessera/base/utf8.h"
#include "tessera/files/json_lines.h"
#include "tessera/token_files/sentences.h"

namespace tessera::fuzz {

namespace {

std::string without_blanks(std::string_view text) {
  std::string out(text);
  std::erase_if(out, [](char c) {
    return std::string_view(" \t\n\r\f\v").find(c) != std::string_view::npos;
  });
  return out;
}

void run(std::string_view input) {
  const std::string path = "input";
  const std::vector<std::string> keys = {"text", "title"};
  for_each_line({std::string(input), &path, 1}, [&](std::string_view line, const LinePlace& place) {
    const auto texts = texts_in_line(line, keys, place);
    then([&] {
      for (const auto& of_key : texts) {
        for (const std::string& text : of_key) {
          check(find_invalid_utf8(text) == std::string::npos, "a text that is not UTF-8");
          for (const bool keep : {false, true}) {
            std::string joined;
            for (const std::string_view sentence : sentences_of(text, keep)) {
              check(!sentence.empty(), "a sentence of nothing");
              joined += sentence;
            }
            check(without_blanks(joined) == without_blanks(text), "sentences of '", text, "'");
          }
        }
      }
    });
  });
}

}  // namespace

const Target kTarget = {1 << 20, 256, run};

}  // namespace tessera::fuzz
