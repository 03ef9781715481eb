#include "tessera/train/gather_texts.h"

#include <cstdint>

namespace tessera {

std::vector<std::string> gather_texts(Communicator* world, const std::string& mine) {
  if (world == nullptr) return {mine};
  const auto size = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(world->size()));
  world->run(Collective::all_gather(DType::I64, {world->size()}, 0, "sizes of reports"), &size,
             sizes.data());
  const auto words = [&](int rank) { return (sizes[static_cast<std::size_t>(rank)] + 3) / 4; };
  std::vector<std::string> out{mine};
  if (world->rank() > 0) {
    out[0].resize(static_cast<std::size_t>(words(world->rank()) * 4));
    if (size > 0)
      world->run(Collective::send(DType::I32, {words(world->rank())}, 0, "report"), out[0].data(),
                 nullptr);
    return {};
  }
  for (int r = 1; r < world->size(); ++r) {
    std::string& text = out.emplace_back(static_cast<std::size_t>(words(r) * 4), ' ');
    if (!text.empty())
      world->run(Collective::recv(DType::I32, {words(r)}, r, "report"), nullptr, text.data());
    text.resize(static_cast<std::size_t>(sizes[static_cast<std::size_t>(r)]));
  }
  return out;
}

}  // namespace tessera
