/// Which programs of other makers stand beside a run.

#include "tessera/bench/peer.h"

#include <gtest/gtest.h>

#include "tessera/base/text.h"
#include "tessera/config/presets.h"
#include "tessera/device/device.h"

namespace tessera {
namespace {

struct PeersCase {
  const char *preset, *device;
  std::int64_t devices;
  bool bf16;
  const char* names;
};

TEST(Peers, AreOfTheDevicesOfARun) {
  const PeersCase cases[] = {
      {"gpt2-tiny", "cpu", 1, false, "PyTorch, JAX"},
      {"gpt2-tiny", "cpu", 2, false,
       "PyTorch on one device, PyTorch DDP, PyTorch FSDP2, PyTorch TP, JAX on one device"},
      {"bert-tiny", "cpu", 2, false,
       "PyTorch on one device, PyTorch DDP, PyTorch FSDP2, JAX on one device"},
      {"gpt2-tiny", "pjrt:cuda", 1, false, "PyTorch compile, JAX"},
      // In the floats of the run alone.
      {"gpt2-tiny", "pjrt:cuda", 1, true, "PyTorch compile bf16, JAX bf16"},
      {"bert-tiny", "pjrt:cuda", 4, true,
       "PyTorch compile on one device bf16, JAX on one device bf16, JAX dp bf16"},
  };
  for (const PeersCase& c : cases) {
    RunConfig config;
    find_preset(c.preset).apply(config);
    config.device = c.device, config.parallel.devices = c.devices, config.bf16 = c.bf16;
    config.choices = machine_choices();
    config.choices->isa = Isa::Avx2;  // which multiplies no bf16
    complete(config);
    std::vector<std::string> names;
    for (const PeerRun& run : peer_runs(config, 1)) {
      names.push_back(run.name);
      const bool on_plugin = std::string(c.device) != "cpu";
      EXPECT_EQ(run.devices, on_plugin && run.mode == "dp" ? c.devices : 1) << run.name;
      EXPECT_EQ(run.processes > 1, run.mode == "ddp" || run.mode == "fsdp2" || run.mode == "tp");
    }
    EXPECT_EQ(join(names), c.names) << c.preset << " on " << c.devices << " " << c.device;
  }
}

}  // namespace
}  // namespace tessera
