/// The tests of backends on processes: a world is the program's, or a group of its ranks.
///
/// Run:  mpirun -n 4 build/comm_process_test
///       build/start_ranks 4 build/comm_process_test

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <vector>

#include "comm/backend.h"
#include "tessera/base/error.h"
#include "tessera/comm/processes.h"

namespace tessera {

namespace {

Communicator* program = nullptr;  // the world of the program; tests cannot be handed it

/// Ranks other than the first tell only what fails.
class Failures final : public testing::EmptyTestEventListener {
 public:
  explicit Failures(int rank) : rank_(rank) {}
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::printf("[rank %d] %s:%d: %s\n", rank_, result.file_name(), result.line_number(),
                result.message());
  }

 private:
  int rank_;
};

}  // namespace

const std::vector<int>& worlds() {
  static const std::vector<int> sizes = [] {
    std::vector<int> out;
    for (int n = 1; n <= program->size(); ++n) out.push_back(n);
    return out;
  }();
  return sizes;
}

bool has_world(int n) { return n == program->size(); }

/// A smaller world has the last ranks of the program, in reverse.
void run_world(int n, const std::function<void(Communicator&)>& body) {
  if (n == program->size()) return body(*program);
  if (n > program->size()) return;
  Group group{text("last", n), {}};
  for (int r = 0; r < n; ++r) group.ranks.push_back(program->size() - 1 - r);
  if (group.index_of(program->rank()) < 0) return;
  const auto world = program->join(group);
  body(*world);
}

}  // namespace tessera

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int code = 0;
  try {
    tessera::LaunchedOptions options;
    options.deadline = std::chrono::seconds(60);
    auto launched = tessera::launch_of([](const char* name) { return std::getenv(name); }, {});
    if (launched.how == tessera::Launched::Alone)  // start_ranks 1
      launched.how = tessera::Launched::Tcp, launched.rank = 0, launched.size = 1;
    tessera::run_launched(
        launched,
        [&](tessera::Communicator& world) {
          tessera::program = &world;
          auto& listeners = testing::UnitTest::GetInstance()->listeners();
          if (world.rank() != 0) {
            delete listeners.Release(listeners.default_result_printer());
            listeners.Append(new tessera::Failures(world.rank()));
          }
          code = RUN_ALL_TESTS();
        },
        options);
  } catch (const tessera::Reported& e) {
    return static_cast<int>(e.fault());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
  return code;
}
