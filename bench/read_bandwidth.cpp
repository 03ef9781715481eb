/// How fast the memory of this machine can be read: each thread sums its own part of one buffer.
///
/// The buffer is on huge pages where the system has them, and each thread has touched its part. The
/// first pass is not counted; the median of the others is what a program that reads so many bytes
/// again and again can hope for. Prints one line of JSON.
///
/// Run:    build/read_bandwidth [--threads N] [--mib N] [--repeats N]
#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "team.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kHugePage = 2 << 20, kLine = 8;  // numbers of 64 bits in a cache line

struct Free {
  void operator()(std::uint64_t* p) const { std::free(p); }
};

/// The sum of numbers [begin, end): a chain of additions for each place in a line, so that loads do
/// not wait for sums. `end - begin` is a multiple of kLine.
std::uint64_t sum(const std::uint64_t* begin, const std::uint64_t* end) {
  std::uint64_t sums[kLine] = {};
  for (; begin != end; begin += kLine) {
    for (std::size_t i = 0; i < kLine; ++i) sums[i] += begin[i];
  }
  std::uint64_t out = 0;
  for (const std::uint64_t part : sums) out += part;
  return out;
}

/// The whole number above 0 after `flag`.
bool take(std::string_view flag, char** words, int count, int& i, int& value) {
  if (words[i] != flag) return false;
  if (i + 1 == count) std::exit(2);
  const std::string_view word = words[++i];
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size() || value < 1) {
    std::fprintf(stderr, "read_bandwidth: %s is '%s'; give a whole number above 0\n", words[i - 1],
                 words[i]);
    std::exit(2);
  }
  return true;
}

}  // namespace

int main(int count, char** words) {
  int threads = 1, mib = 512, repeats = 7;
  for (int i = 1; i < count; ++i) {
    if (take("--threads", words, count, i, threads) || take("--mib", words, count, i, mib) ||
        take("--repeats", words, count, i, repeats))
      continue;
    std::fprintf(stderr, "read_bandwidth [--threads N] [--mib N] [--repeats N]\n");
    return 2;
  }
  const std::size_t bytes = static_cast<std::size_t>(mib) << 20, numbers = bytes / 8;
  const std::unique_ptr<std::uint64_t, Free> memory(static_cast<std::uint64_t*>(
      std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage)));
  if (!memory) {
    std::fprintf(stderr, "read_bandwidth: no memory for %d MiB; give a lower --mib\n", mib);
    return 5;
  }
  madvise(memory.get(), bytes, MADV_HUGEPAGE);  // where the system has them
  bench::Team team(threads);
  const auto begin_of = [&](int thread) {
    return memory.get() + numbers / kLine * static_cast<std::size_t>(thread) /
                              static_cast<std::size_t>(threads) * kLine;
  };
  team.run([&](int t) {
    std::memset(begin_of(t), t + 1,
                static_cast<std::size_t>(begin_of(t + 1) - begin_of(t)) * sizeof(std::uint64_t));
  });
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads) * kLine);  // a line for each
  std::vector<double> seconds;
  for (int r = 0; r <= repeats; ++r) {
    const Clock::time_point begin = Clock::now();
    team.run([&](int t) {
      sums[static_cast<std::size_t>(t) * kLine] += sum(begin_of(t), begin_of(t + 1));
    });
    if (r > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::uint64_t total = 0;  // told, so that nothing is left out as useless
  for (const std::uint64_t part : sums) total += part;
  std::sort(seconds.begin(), seconds.end());
  const double read = static_cast<double>(numbers / kLine * kLine * 8);
  std::printf(
      "{\"bytes\": %.0f, \"threads\": %d, \"seconds\": %.6f, \"bytes_per_s\": %.4e, "
      "\"best_bytes_per_s\": %.4e, \"sum\": \"%016llx\"}\n",
      read, threads, seconds[seconds.size() / 2], read / seconds[seconds.size() / 2],
      read / seconds[0], static_cast<unsigned long long>(total));
}
