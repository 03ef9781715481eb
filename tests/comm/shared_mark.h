#pragma once
/// A number that the ranks of a test see without comm, whether they are threads or processes.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "tessera/base/error.h"
#include "tessera/comm/communicator.h"

namespace tessera {

class SharedMark {
 public:
  /// All ranks of one machine together; rank 0 makes it.
  explicit SharedMark(Communicator& world) : world_(world) {
    static std::atomic<int> made{0};
    std::int64_t id = world.rank() == 0 ? getpid() * 1'000'000L + ++made : 0;
    if (world.rank() == 0) map(id, O_RDWR | O_CREAT | O_EXCL);
    world.run(Collective::broadcast(DType::I64, {}, 0, "id"), &id, &id);
    if (world.rank() != 0) map(id, O_RDWR);
    world.run(Collective::barrier("all have it"), nullptr, nullptr);
    if (world.rank() == 0) shm_unlink(name(id).c_str());
  }
  ~SharedMark() { munmap(value_, sizeof(*value_)); }
  SharedMark(const SharedMark&) = delete;
  SharedMark& operator=(const SharedMark&) = delete;

  void raise() { value_->fetch_add(1); }
  bool has(int count) const { return value_->load() >= count; }
  /// Computes until it has been raised so often: calls nothing of comm but alive().
  void compute_until(int count) {
    const auto begin = std::chrono::steady_clock::now();
    while (!has(count)) {
      world_.alive();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      check(std::chrono::steady_clock::now() - begin < std::chrono::seconds(50),
            "what is awaited does not come without a wait");
    }
  }

 private:
  static std::string name(std::int64_t id) { return text("/tessera-comm-test-", id); }
  void map(std::int64_t id, int how) {
    const int file = shm_open(name(id).c_str(), how, 0600);
    check(file >= 0 && ftruncate(file, sizeof(*value_)) == 0, "no shared memory ", name(id));
    void* const page = mmap(nullptr, sizeof(*value_), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    check(page != MAP_FAILED, "no shared memory ", name(id));
    value_ = static_cast<std::atomic<int>*>(page);  // new pages are 0
  }

  Communicator& world_;
  std::atomic<int>* value_ = nullptr;
};

}  // namespace tessera
