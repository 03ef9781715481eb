#include <sched.h>
#include <sys/mman.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>

#include "tessera/base/cores.h"
#include "tessera/base/error.h"
#include "tessera/device/compiled.h"
#include "tessera/device/cpu/copy_engine.h"
#include "tessera/device/cpu/in_f32.h"
#include "tessera/device/cpu/isa.h"
#include "tessera/device/cpu/kernels.h"
#include "tessera/device/cpu/offload_file.h"
#include "tessera/device/cpu/packed.h"
#include "tessera/device/cpu/strides.h"
#include "tessera/device/cpu/widened.h"
#include "tessera/gemm/onednn.h"

namespace tessera {

namespace {

constexpr std::int64_t kHugePage = 2 << 20, kPage = 4096;

class CpuDevice final : public Device {
 public:
  CpuDevice(const CpuOptions& options, const CpuChoices& choices)
      : pack_always_(options.pack_always),
        block_bytes_(options.block_bytes),
        choices_(choices),
        offload_folder_(options.offload_folder),
        copies_(usable_cores()),
        pool_(options.threads > 0 ? options.threads : num_usable_cores(), options.first_core) {}

  ~CpuDevice() override {
    copies_.wait_all();
    for (const auto& [memory, bytes] : arenas_) munmap(memory, static_cast<std::size_t>(bytes));
  }

  std::string name() const override { return text("cpu x ", pool_.threads()); }

  std::string isa() const override { return std::string(to_text(choices_.isa)); }
  std::string f32_products() const override { return std::string(to_text(choices_.f32_products)); }

  std::unique_ptr<Kernel> make_kernel(const KernelRequest& request) override {
    const bool narrow = cpu::has_16_bit(request.call);
    for (const cpu::KernelEntry& entry : cpu::kernel_list()) {
      if (!entry.is_for(request.call.op()) || entry.isa > choices_.isa) continue;
      if (entry.f32_products > choices_.f32_products) continue;
      if (narrow && !entry.any_dtype) continue;
      if (std::unique_ptr<Kernel> kernel = entry.make(request, pool_)) return kernel;
    }
    if (!narrow) return cpu::make_reference_kernel(request);
    return cpu::make_widened(
        request, pool_, [this](const KernelRequest& wide) { return make_kernel(wide); },
        block_bytes_);
  }

  bool accepts_strides(const OpDef& op, int operand) const override {
    return cpu::accepts_strides(op, operand);
  }

  std::optional<Layout> wanted_layout(const OpCall& call, int operand,
                                      std::int64_t uses) const override {
    if (cpu::has_16_bit(call)) return std::nullopt;
    return cpu::packed_layout(call, operand, uses,
                              {.threads = pool_.threads(),
                               .pays = choices_.pack_weights,
                               .always = pack_always_,
                               .amx = choices_.f32_products == F32Products::Amx});
  }

  void* allocate(Memory memory, std::int64_t bytes) override;
  std::shared_ptr<std::byte> allocate_for_several(std::int64_t bytes) override;
  std::int64_t huge_page_bytes(const void* memory) const override;

  void release(void* memory) override {
    const auto found = arenas_.find(memory);
    check(found != arenas_.end(), "memory is released that this device did not allocate");
    copies_.wait_all();
    munmap(memory, static_cast<std::size_t>(found->second));
    arenas_.erase(found);
  }

  void fill(void* to, std::byte with, std::int64_t bytes) override {
    std::memset(to, static_cast<int>(with), static_cast<std::size_t>(bytes));
  }

  void copy(void* to, const void* from, std::int64_t bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  void expect_copies(std::int64_t most) override { copies_.expect(static_cast<std::size_t>(most)); }

  std::uint64_t start_copy(void* to, const void* from, std::int64_t bytes) override {
    return copies_.start(to, from, static_cast<std::size_t>(bytes));
  }

  void wait_copy(std::uint64_t number) override { copies_.wait(number); }

 private:
  void* allocate_arena(std::int64_t size);

  bool pack_always_;
  std::int64_t block_bytes_;
  CpuChoices choices_;
  std::string offload_folder_;
  cpu::CopyEngine copies_;
  cpu::Pool pool_;
  std::map<void*, std::int64_t> arenas_;
};

/// At least one page.
std::int64_t in_pages(std::int64_t bytes, std::int64_t page) {
  check(bytes >= 0, "a pool of ", bytes, " bytes");
  return std::max((bytes + page - 1) / page, std::int64_t{1}) * page;
}

std::shared_ptr<std::byte> CpuDevice::allocate_for_several(std::int64_t bytes) {
  const std::int64_t size = in_pages(bytes, kHugePage);
  return {static_cast<std::byte*>(allocate_arena(size)),
          [size](std::byte* memory) { munmap(memory, static_cast<std::size_t>(size)); }};
}

void* CpuDevice::allocate(Memory memory, std::int64_t bytes) {
  const bool is_file = memory == Memory::Host && !offload_folder_.empty();
  const std::int64_t size =
      in_pages(bytes, is_file ? kPage : kHugePage);  // files have no huge ones
  void* const out = is_file ? cpu::map_offload_file(offload_folder_, size) : allocate_arena(size);
  arenas_.emplace(out, size);
  return out;
}

/// A reservation larger by one huge page, cut to its aligned part.
void* CpuDevice::allocate_arena(std::int64_t size) {
  const auto reserved = static_cast<std::size_t>(size + kHugePage);
  void* raw = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    fail(Fault::Resource, "the device's memory of ", size >> 20,
         " MiB cannot be reserved: ", std::strerror(errno),
         "; use a smaller model, batch or context, or raise the memory limit (ulimit -v, cgroup)");
  }
  char* const base = static_cast<char*>(raw);
  const auto address = reinterpret_cast<std::uintptr_t>(raw);
  const std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  const std::size_t after = kHugePage - before;
  if (before > 0) munmap(base, before);
  if (after > 0) munmap(base + before + size, after);
  char* const memory = base + before;
  madvise(memory, static_cast<std::size_t>(size),
          MADV_HUGEPAGE);  // advice: refusal costs only speed
  pool_.pin_caller();      // a small arena is touched by the caller alone
  pool_.split(size, kHugePage, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += kPage) static_cast<volatile char*>(memory)[i] = 0;
  });
  return memory;
}

/// The kernel's list of mappings: a line "begin-end rights ..." with both ends in hexadecimal, then
/// lines like "AnonHugePages:   4096 kB". Neighbouring arenas may be one mapping.
std::int64_t CpuDevice::huge_page_bytes(const void* memory) const {
  const auto found = arenas_.find(const_cast<void*>(memory));
  check(found != arenas_.end(), "memory is asked for that this device did not allocate");
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    const char *at = line.data(), *const last = at + line.size();
    const auto [dash, bad] = std::from_chars(at, last, begin, 16);
    if (bad == std::errc() && dash < last && *dash == '-' &&
        std::from_chars(dash + 1, last, end, 16).ec == std::errc()) {
      inside = begin <= address && address < end;
    } else if (inside && starts_with(line, "AnonHugePages:")) {
      return std::min(std::stoll(line.substr(14)) * 1024LL, static_cast<long long>(found->second));
    }
  }
  return 0;
}

}  // namespace

std::string product_library() { return cpu::onednn_version(); }

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  require(options.threads >= 0, "threads: ", options.threads, " is negative; 0 takes one per core");
  const CpuChoices machine = machine_choices(), choices = options.choices.value_or(machine);
  require_compiled(choices.isa, "instruction set");
  require(choices.isa <= machine.isa, "instruction set ", to_text(choices.isa), " is above ",
          to_text(machine.isa), ", the highest of this machine; choose that or a lower one");
  check(choices.f32_products == F32Products::Fma || choices.isa >= Isa::Amx,
        "f32 products by AMX on a device of instruction set ", to_text(choices.isa));
  cpu::cap_libraries(choices.isa);
  return std::make_unique<CpuDevice>(options, choices);
}

}  // namespace tessera
