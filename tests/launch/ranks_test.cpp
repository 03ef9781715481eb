/// Ranks whose device fails: the failure reaches whoever called them.

#include "tessera/launch/ranks.h"

#include <gtest/gtest.h>

#include <sstream>

#include "accelerator/test_run.h"
#include "tessera/launch/exit_code.h"

namespace tessera::test {
namespace {

TEST(Ranks, AFailureOfADeviceReachesTheCaller) {
  for (const int devices : {1, 2}) {
    const pjrt::TestPlugin plugin;
    RunConfig config;
    config.device = "pjrt:" + plugin.file();
    config.parallel.devices = devices;
    plugin.control().devices = devices;
    plugin.control().fail_at = "PJRT_LoadedExecutable_Execute";
    plugin.control().keep_clients = true;
    std::ostringstream out;
    Console console{out, out};
    const std::string error = pjrt::error_of([&] {
      on_ranks(config, nullptr, console, [&](Communicator* world, const Backend& backend) {
        const auto rank = static_cast<std::size_t>(world == nullptr ? 0 : world->rank());
        backend.start(plans_of({devices, 1})[rank], world, {})->run(kInitProgram);
      });
    });
    EXPECT_TRUE(pjrt::has(error, "PJRT_LoadedExecutable_Execute: INTERNAL")) << error;
    EXPECT_EQ(out.str(), "");
    EXPECT_TRUE(is_left_behind());
  }
}

}  // namespace
}  // namespace tessera::test
