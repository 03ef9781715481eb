#include "tessera/accelerator/product_rate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/pjrt/buffer.h"
#include "tessera/pjrt/executable.h"

namespace tessera {

namespace {

/// Large enough that starting a product takes no time beside it.
std::int64_t product_size(const pjrt::Client& client) {
  return client.platform_name() == "cpu" ? 1024 : 8192;
}

std::string product_module(std::int64_t n) {
  const std::string type = text("tensor<", n, "x", n, "xf32>");
  return text("module @product {\n  func.func public @main(%a: ", type, ", %b: ", type, ") -> ",
              type,
              " {\n    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], "
              "precision = [HIGHEST, HIGHEST] : (",
              type, ", ", type, ") -> ", type, "\n    return %0 : ", type, "\n  }\n}\n");
}

}  // namespace

double product_rate(LoadedPrograms& devices, double seconds) {
  using Clock = std::chrono::steady_clock;
  const pjrt::Client& client = devices.client();
  const std::int64_t n = product_size(client);
  const pjrt::Device& device = client.local_devices()[0];
  const auto product = std::make_shared<const pjrt::Executable>(
      pjrt::compile(client, product_module(n), {.device_assignment = {{device.id}}}));
  const std::vector<float> ones(static_cast<std::size_t>(n * n), 1.0F);
  const auto operand = std::make_shared<const pjrt::Buffer>(
      pjrt::to_device(client, std::as_bytes(std::span(ones)), DType::F32, {n, n}, device));
  const auto run = [&] {
    devices.call_alone(
        [product, operand] {
          product->execute({{operand.get(), operand.get()}});
        },
        "a product");
  };
  run();
  double best = 0, spent = 0;
  while (best == 0 || spent < seconds) {
    const Clock::time_point begin = Clock::now();
    run();
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 2 * std::pow(static_cast<double>(n), 3) / took);
    spent += took;
  }
  return best;
}

}  // namespace tessera
