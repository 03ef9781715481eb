/// Machines of which figures were published. Links and rates are the makers' peaks: what a run
/// reaches of them, the half_* of products and the weights say, or `tessera doctor --calibrate`.

#include "tessera/machines/find_machine.h"

namespace tessera {

namespace {

constexpr std::int64_t kGigabyte = 1'000'000'000, kGibibyte = std::int64_t{1} << 30;

/// Products reach half their peak where one extent is so long and the others are without end.
constexpr FloatSpeed products(double teraflops_per_s, double half = 256) {
  return {1000 * teraflops_per_s, half, half, half};
}

constexpr NumberSource kEstimated = {
    "links.*.latency, host.latency, device.kernel_start, device.*.half_*, device.*.attention, "
    "device.*.others",
    "estimates: of products of 4096 x 4096 x 4096 0.83 of the peak, attention as fast as its "
    "products; nobody publishes them, and `tessera doctor --calibrate` measures them"};

/// bench/results/2026-11-26-published.md
constexpr std::string_view kPublishedRuns =
    "25 % too short on average, 8 to 39 %, beside 32 published runs on A100 and H100";

Machine described(std::string_view name) {
  Machine out;
  out.name = name;
  out.kernels = KernelSource::Described;
  out.device.start_microseconds = 4;
  out.device.overlap = true;
  return out;
}

NamedMachine ascend910() {
  Machine m = described("ascend910-2048");
  m.core = {90, 2, 4, 1};
  m.socket = {32, 4, 2, 4};
  m.host = {100, 6, 256, 8};
  m.rack = {100, 6, 1, 8};
  m.device.f16 = m.device.bf16 = products(256);
  m.device.f32 = products(64);
  m.device.other_gigaflops_per_s = 4000;
  m.device.memory_gigabytes_per_s = 1200;
  m.device.memory_bytes = 32 * kGibibyte;
  m.memory = {96 * kGigabyte, 32, 10};
  return {m.name,
          "256 servers of 8 Ascend 910, which trained PanGu-alpha",
          m,
          {{"device.f16.peak, device.memory_bandwidth, links.*.units, links.host, links.rack",
            "Liao et al., Ascend: a Scalable and Unified Architecture for Ubiquitous Deep Neural "
            "Network Computing (HPCA 2021): 256 TFLOPS of f16, HBM at 1.2 TB/s, servers of 8 in "
            "two groups, 2048 in 256 servers joined by 100 Gb/s links, one per device"},
           {"links.core.bandwidth",
            "Huawei, Hot Chips 31 (2019): 3 HCCS ports of 240 Gb/s per device, so that 4 "
            "are wired to each other"},
           {"links.socket.bandwidth, host.bandwidth",
            "PCIe 4.0 x16: 32 GB/s, between the groups and to the host"},
           {"device.memory", "Zeng et al., PanGu-alpha (2021): 32 GB of memory per device"},
           {"device.bf16.peak, device.f32.peak, device.other_arithmetic, host.memory",
            "estimates: it has no bf16, which is planned as f16; a quarter for f32; vectors of "
            "2048 bits in 32 cores at 1 GHz; 768 GB in a server"},
           kEstimated}};
}

NamedMachine a100() {
  Machine m = described("a100-1024");
  m.known_error = kPublishedRuns;
  m.core = {300, 2, 8, 1};
  m.socket = {300, 2, 1, 1};
  m.host = {200, 5, 128, 8};
  m.rack = {200, 5, 1, 8};
  m.device.f16 = m.device.bf16 = products(312);
  m.device.f32 = products(19.5);
  m.device.other_gigaflops_per_s = 19500;
  m.device.memory_gigabytes_per_s = 2039;
  m.device.memory_bytes = 80 * kGibibyte;
  m.memory = {250 * kGigabyte, 32, 10};
  return {m.name,
          "128 DGX A100 servers of 8 A100 80 GB SXM",
          m,
          {{"device.*.peak, device.other_arithmetic, device.memory, device.memory_bandwidth, "
            "links.core.bandwidth, links.socket.bandwidth",
            "NVIDIA A100 datasheet: 312 TFLOPS of bf16, 19.5 of f32, 80 GB at 2039 GB/s, NVLink "
            "600 GB/s in both directions together"},
           {"links.*.units, links.host.bandwidth, links.rack.bandwidth, host.memory",
            "NVIDIA DGX A100 datasheet: 8 devices joined by NVSwitch, 8 network cards of 200 Gb/s, "
            "2 TB of memory"},
           {"host.bandwidth", "PCIe 4.0 x16: 32 GB/s"},
           kEstimated}};
}

NamedMachine h100() {
  Machine m = described("h100-256");
  m.known_error = kPublishedRuns;
  m.core = {450, 2, 8, 1};
  m.socket = {450, 2, 1, 1};
  m.host = {400, 5, 32, 8};
  m.rack = {400, 5, 1, 8};
  m.device.f16 = m.device.bf16 = products(989, 384);
  m.device.f32 = {51000, 15, 6, 38};
  m.device.other_gigaflops_per_s = 67000;
  m.device.memory_gigabytes_per_s = 3350;
  m.device.memory_bytes = 80 * kGibibyte;
  m.memory = {250 * kGigabyte, 64, 10};
  return {m.name,
          "32 DGX H100 servers of 8 H100 80 GB SXM",
          m,
          {{"device.bf16.peak, device.f16.peak, device.other_arithmetic, device.memory, "
            "device.memory_bandwidth, links.core.bandwidth, links.socket.bandwidth",
            "NVIDIA H100 datasheet: 989 TFLOPS of bf16 without sparsity, 67 of f32, 80 GB at 3.35 "
            "TB/s, NVLink 900 GB/s in both directions together"},
           {"device.f32.peak, device.f32.half_*",
            "fitted to 151 products that PyTorch made on one H200, whose multiprocessors are the "
            "H100's (bench/results/2026-11-26-notes.md)"},
           {"links.*.units, links.host.bandwidth, links.rack.bandwidth, host.memory",
            "NVIDIA DGX H100 datasheet: 8 devices joined by NVSwitch, 8 network cards of 400 Gb/s, "
            "2 TB of memory"},
           {"host.bandwidth", "PCIe 5.0 x16: 64 GB/s"},
           {"links.*.latency, host.latency, device.kernel_start, device.bf16.half_*, "
            "device.f16.half_*, device.*.attention, device.*.others",
            "estimates: of products of 4096 x 4096 x 4096 0.76 of the peak, attention as fast as "
            "its products; nobody publishes them, and `tessera doctor --calibrate` measures "
            "them"}}};
}

NamedMachine tpuv4() {
  Machine m = described("tpuv4-4096");
  m.core = {100, 1, 4, 1};
  m.socket = {100, 1, 16, 1};
  m.host = {100, 2, 64, 1};
  m.rack = {100, 2, 1, 1};
  m.device.f16 = m.device.bf16 = products(275);
  m.device.f32 = products(46);
  m.device.other_gigaflops_per_s = 4300;
  m.device.memory_gigabytes_per_s = 1228;
  m.device.memory_bytes = 32 * kGibibyte;
  m.memory = {128 * kGigabyte, 16, 10};
  return {m.name,
          "a pod of 64 cubes of 64 TPU v4, in a torus of three dimensions",
          m,
          {{"device.bf16.peak, device.memory, device.memory_bandwidth",
            "Google Cloud, TPU v4: 275 TFLOPS of bf16, 32 GiB at 1.2 TB/s, 4096 chips in a pod"},
           {"links.*.bandwidth, links.*.units",
            "Jouppi et al., TPU v4 (ISCA 2023): 4 chips per host, cubes of 4 x 4 x 4, 6 links of "
            "50 GB/s per chip, two of them in each dimension of the torus: 100 GB/s along a ring"},
           {"host.bandwidth", "PCIe 3.0 x16: 16 GB/s"},
           {"device.f16.peak, device.f32.peak, device.other_arithmetic, host.memory",
            "estimates: f16 as bf16; f32 by six products of bf16; 2 vector units of 8 x 128 x 2 "
            "at 1.05 GHz; 512 GB in a host"},
           kEstimated}};
}

}  // namespace

std::vector<NamedMachine> named_machines() { return {ascend910(), a100(), h100(), tpuv4()}; }

}  // namespace tessera
