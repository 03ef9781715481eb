#include "tessera/accelerator/product_rate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/pjrt/buffer.h"
#include "tessera/pjrt/executable.h"

namespace tessera {

namespace {

constexpr std::int64_t kProductSize = 1024;

std::string product_module(std::int64_t n) {
  const std::string type = text("tensor<", n, "x", n, "xf32>");
  return text("module @product {\n  func.func public @main(%a: ", type, ", %b: ", type, ") -> ",
              type,
              " {\n    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], "
              "precision = [HIGHEST, HIGHEST] : (",
              type, ", ", type, ") -> ", type, "\n    return %0 : ", type, "\n  }\n}\n");
}

}  // namespace

double product_rate(const pjrt::Client& client, double seconds) {
  using Clock = std::chrono::steady_clock;
  const pjrt::Device& device = client.local_devices()[0];
  const pjrt::Executable product =
      pjrt::compile(client, product_module(kProductSize), {.device_assignment = {{device.id}}});
  const std::vector<float> ones(static_cast<std::size_t>(kProductSize * kProductSize), 1.0F);
  const pjrt::Buffer operand = pjrt::to_device(client, std::as_bytes(std::span(ones)), DType::F32,
                                               {kProductSize, kProductSize}, device);
  const pjrt::Arguments arguments = {{&operand, &operand}};
  product.execute(arguments);
  double best = 0, spent = 0;
  while (best == 0 || spent < seconds) {
    const Clock::time_point begin = Clock::now();
    product.execute(arguments);
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, 2.0 * kProductSize * kProductSize * kProductSize / took);
    spent += took;
  }
  return best;
}

}  // namespace tessera
