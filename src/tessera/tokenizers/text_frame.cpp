#include "tessera/tokenizers/text_frame.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {

bool TextFrame::adds_tokens() const { return around(1) > 0 || around(2) > 0; }

std::int64_t TextFrame::around(std::size_t texts) const {
  return std::ranges::count(of(texts), -1, &FramePart::text);
}

TextFrame text_frame(std::int32_t cls, std::int32_t sep, bool doubled) {
  const FramePart begin{.id = cls}, end{.id = sep};
  TextFrame out{{begin, {.text = 0}, end}, {begin, {.text = 0}, end}};
  if (doubled) {
    out.pair.insert(out.pair.end(), {end, {.text = 1}, end});
  } else {
    out.pair.insert(out.pair.end(), {{.text = 1, .type = 1}, {.id = sep, .type = 1}});
  }
  return out;
}

KeptTokens longest_first(std::int64_t first, std::int64_t second, std::int64_t room) {
  if (first + second <= room) return {first, second};
  const bool swapped = first > second;
  std::int64_t shorter = std::min(first, second), longer = std::max(first, second);
  longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = room - shorter;
  }
  return swapped ? KeptTokens{longer, shorter} : KeptTokens{shorter, longer};
}

FramedTexts framed(const TextFrame& frame, std::span<const std::span<const std::int32_t>> texts,
                   std::int64_t room) {
  check(texts.size() == 1 || texts.size() == 2, texts.size(), " texts of a sample");
  const std::int64_t left = room - frame.around(texts.size());
  check(left >= 0, "room for ", room, " tokens");
  KeptTokens kept{std::min(std::ssize(texts[0]), left), 0};
  if (texts.size() == 2) kept = longest_first(std::ssize(texts[0]), std::ssize(texts[1]), left);
  FramedTexts out;
  for (const FramePart& part : frame.of(texts.size())) {
    if (part.text < 0) {
      out.ids.push_back(part.id);
    } else {
      const auto count = static_cast<std::size_t>(part.text == 0 ? kept.first : kept.second);
      const std::span<const std::int32_t> text = texts[static_cast<std::size_t>(part.text)],
                                          tokens = frame.keeps_end ? text.last(count)
                                                                   : text.first(count);
      out.ids.insert(out.ids.end(), tokens.begin(), tokens.end());
    }
    out.types.resize(out.ids.size(), part.type);
  }
  return out;
}

}  // namespace tessera
