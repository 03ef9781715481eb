#include "tessera/comm/share_text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace tessera {

namespace {

using Words = std::vector<std::int32_t>;

std::int64_t words_of(std::int64_t bytes) { return (bytes + 3) / 4; }

Words packed(const std::string& text, std::int64_t words) {
  Words out(static_cast<std::size_t>(words));
  if (!text.empty()) std::memcpy(out.data(), text.data(), text.size());
  return out;
}

}  // namespace

std::vector<std::string> gather_texts(Communicator& world, const std::string& mine,
                                      const std::string& name) {
  const std::int64_t n = world.size();
  const auto size = static_cast<std::int32_t>(mine.size());
  Words sizes(static_cast<std::size_t>(n));
  world.run(Collective::all_gather(DType::I32, {n}, 0, name), &size, sizes.data());
  const std::int64_t each = words_of(*std::max_element(sizes.begin(), sizes.end()));
  const Words in = packed(mine, each);
  Words out(static_cast<std::size_t>(n * each));
  world.run(Collective::all_gather(DType::I32, {n * each}, 0, name), in.data(), out.data());
  std::vector<std::string> texts;
  for (std::int64_t r = 0; r < n; ++r) {
    const auto* begin = reinterpret_cast<const char*>(out.data() + r * each);
    texts.emplace_back(begin, static_cast<std::size_t>(sizes[static_cast<std::size_t>(r)]));
  }
  return texts;
}

std::vector<std::string> gather_texts(Communicator* world, const std::string& mine,
                                      const std::string& name) {
  return world == nullptr ? std::vector{mine} : gather_texts(*world, mine, name);
}

std::string share_text(Communicator& world, const std::string& text, const std::string& name) {
  auto size = static_cast<std::int32_t>(text.size());
  world.run(Collective::broadcast(DType::I32, {1}, 0, name), &size, &size);
  const std::int64_t words = words_of(size);
  Words all = world.rank() == 0 ? packed(text, words) : Words(static_cast<std::size_t>(words));
  world.run(Collective::broadcast(DType::I32, {words}, 0, name), all.data(), all.data());
  return {reinterpret_cast<const char*>(all.data()), static_cast<std::size_t>(size)};
}

}  // namespace tessera
