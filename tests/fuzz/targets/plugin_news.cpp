/// What plugins of several processes tell each other, as ranks carry it.

#include "fuzz/bytes.h"
#include "fuzz/target.h"
#include "tessera/accelerator/board.h"

namespace tessera::fuzz {

namespace {

/// What is put on one board is on the other, byte by byte.
void put_and_get(std::string_view input) {
  Bytes in(input);
  Board one, other;
  const pjrt::KeyValueStore from = one.store(), to = other.store();
  std::map<std::string, std::string> put;
  while (!in.empty()) {
    const std::string key(in.text()), value(in.text());
    from.put(key, value);
    put[key] = value;
    if (in.below(2) == 0) other.add(one.take_news());
  }
  other.add(one.take_news());
  for (const auto& [key, value] : put) {
    check(to.try_get(key) == value && to.get(key, std::chrono::milliseconds(0)) == value,
          "another value under a key");
  }
}

void run(std::string_view input) {
  then([&] { put_and_get(input); });
  Board board;
  board.add(input);
}

}  // namespace

const Target kTarget = {1 << 20, 2048, run};

}  // namespace tessera::fuzz
