/// The time of the matrix products alone of one training step of GPT-2 small or BERT-base, in f32
/// or bf16.
///
/// Runs only the products (forward, data gradient, weight gradient of every linear and of the
/// vocabulary head; the products of attention) by oneDNN, on threads of our own that each call it
/// with one OpenMP thread on their rows. What a trainer needs beyond this time is everything else:
/// element-wise work, packing, optimizer, waiting.
///
/// Weights are packed beforehand, in the layout oneDNN asks for, and the time is reported apart.
/// Attention counts full score matrices (a causal kernel may skip half) and keeps the probabilities
/// (a streaming kernel computes scores twice). BERT's pooler and its two classes are left out: they
/// are a thousandth of the FLOPs.
///
/// With bf16, operands and results are bf16, but gradients of weights are f32, as a trainer adds
/// them up in that.
///
/// Build:  g++ -std=c++20 -O2 -Wall -Wextra -Wpedantic -Werror -fopenmp bench/gemm_floor.cpp
///             -ldnnl -pthread -o build/gemm_floor
/// Run:    build/gemm_floor --model bert-base --dtype bf16 --threads 2
///         tessera bench ... --beside 'products=build/gemm_floor --threads 2 --steps
///         $TESSERA_STEPS'
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "onednn_product.h"
#include "team.h"

namespace {

using bench::Buffer, bench::Dim, bench::DType, bench::Layout, bench::PackB, bench::Product,
    bench::Team;

struct Options {
  std::string model = "gpt2-small", dtype = "f32";
  int threads = 1;
  int repeats = 3;
  bool steps = false;  // the time of each repeat is told
  Dim batch = 4, seq = 256, layers = 12, heads = 12, width = 768, vocab = 50257;
  Dim head_layers = 0;  // of width by width, between the last block and the vocabulary

  DType type() const { return dtype == "bf16" ? DType::bf16 : DType::f32; }
};

/// One line of the report: of each repeat, the seconds of all `count` products together.
struct Row {
  std::string name, group, variant, kernel;
  std::vector<double> seconds;
  double flops = 0;
};

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

struct Report {
  std::vector<Row> rows;
  double pack_seconds = 0;
};

/// Seconds that `work` takes in each of `repeats` runs, after one that is not counted.
std::vector<double> seconds_of(int repeats, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i > 0) seconds.push_back(took.count());
  }
  return seconds;
}

/// Runs the product once for each element of the three lists, the whole team on each.
std::vector<double> seconds_of(int repeats, Team& team, Product& product,
                               const std::vector<Buffer>& a, const std::vector<Buffer>& b,
                               const std::vector<Buffer>& c) {
  return seconds_of(repeats, [&] {
    for (std::size_t i = 0; i < c.size(); ++i) {
      team.run([&](int t) { product.run(t, a[i], b[i], c[i]); });
    }
  });
}

std::vector<Buffer> buffers(Dim count, Dim size, DType type) {
  std::vector<Buffer> out;
  for (Dim i = 0; i < count; ++i) out.emplace_back(static_cast<std::size_t>(size), type);
  return out;
}

/// Packs every weight, the weights shared out over the team; returns the seconds.
double pack_all(Team& team, const Product& product, const std::vector<Buffer>& from,
                const std::vector<Buffer>& to) {
  return median(seconds_of(1, [&] {
    team.run([&](int t) {
      for (std::size_t i = static_cast<std::size_t>(t); i < from.size();
           i += static_cast<std::size_t>(team.size())) {
        product.pack(from[i], to[i]);
      }
    });
  }));
}

/// `count` layers y = x W^T, each with buffers of its own so that no layer finds its weights in the
/// cache.
void time_linear(Report& report, Team& team, const Options& o, const std::string& name, Dim count,
                 Dim in, Dim out) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const Dim tokens = o.batch * o.seq;
  const DType type = o.type();
  const Layout x = Layout::plain(tokens, in), y = Layout::plain(tokens, out);
  const Layout w = Layout::plain(out, in);
  const auto xs = buffers(count, tokens * in, type), ys = buffers(count, tokens * out, type);
  const auto ws = buffers(count, out * in, type);
  const auto add = [&](const char* group, const char* variant, const Product& product,
                       const std::vector<double>& seconds) {
    report.rows.push_back({name, group, variant, product.kernel(), seconds,
                           product.flops() * static_cast<double>(count)});
  };
  {
    Product forward(engine, team.size(), x, w.transposed(), PackB::Yes, type, type);
    const auto packed = buffers(count, static_cast<Dim>(forward.packed_size()), type);
    report.pack_seconds += pack_all(team, forward, ws, packed);
    add("forward", "packed", forward, seconds_of(o.repeats, team, forward, xs, packed, ys));
    forward.check(xs[0], ws[0], ys[0]);
  }
  {
    // dx = dy W, over x, with y as dy
    Product data(engine, team.size(), y, w, PackB::Yes, type, type);
    const auto packed = buffers(count, static_cast<Dim>(data.packed_size()), type);
    report.pack_seconds += pack_all(team, data, ws, packed);
    add("data_gradient", "packed", data, seconds_of(o.repeats, team, data, ys, packed, xs));
    data.check(ys[0], ws[0], xs[0]);
  }
  // dW = dy^T x, or its transpose x^T dy: whichever runs faster; a trainer may store either.
  const auto grads = buffers(count, out * in, DType::f32);
  Product direct(engine, team.size(), y.transposed(), x, PackB::No, type, DType::f32);
  Product swapped(engine, team.size(), x.transposed(), y, PackB::No, type, DType::f32);
  const std::vector<double> direct_seconds = seconds_of(o.repeats, team, direct, ys, xs, grads);
  direct.check(ys[0], xs[0], grads[0]);
  const std::vector<double> swapped_seconds = seconds_of(o.repeats, team, swapped, xs, ys, grads);
  swapped.check(xs[0], ys[0], grads[0]);
  if (median(direct_seconds) <= median(swapped_seconds)) {
    add("weight_gradient", "dy^T x", direct, direct_seconds);
  } else {
    add("weight_gradient", "x^T dy", swapped, swapped_seconds);
  }
}

/// The six products of attention, one small matrix per sequence and head, the matrices shared out
/// over the team.
void time_attention(Report& report, Team& team, const Options& o) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const Dim n = o.batch * o.heads, head_dim = o.width / o.heads;
  const Layout tall = Layout::plain(o.seq, head_dim, n);  // q, k, v and their gradients
  const Layout square =
      Layout::plain(o.seq, o.seq, n);  // scores, probabilities and their gradients
  struct Case {
    const char *name, *group;
    Layout a, b;
  };
  const Case cases[] = {
      {"scores = q k^T", "attention_forward", tall, tall.transposed()},
      {"y = p v", "attention_forward", square, tall},
      {"dp = dy v^T", "attention_backward", tall, tall.transposed()},
      {"dv = p^T dy", "attention_backward", square.transposed(), tall},
      {"dq = ds k", "attention_backward", square, tall},
      {"dk = ds^T q", "attention_backward", square.transposed(), tall},
  };
  for (const Case& c : cases) {
    Product product(engine, team.size(), c.a, c.b, PackB::No, o.type(), o.type());
    const auto as = buffers(o.layers, n * c.a.rows * c.a.cols, o.type());
    const auto bs = buffers(o.layers, n * c.b.rows * c.b.cols, o.type());
    const auto cs = buffers(o.layers, n * c.a.rows * c.b.cols, o.type());
    const std::vector<double> seconds = seconds_of(o.repeats, team, product, as, bs, cs);
    product.check(as[0], bs[0], cs[0]);
    report.rows.push_back({c.name, c.group, "", product.kernel(), seconds,
                           product.flops() * static_cast<double>(o.layers)});
  }
}

void print_figures(const Row& row) {
  const double seconds = median(row.seconds);
  std::printf("\"seconds\": %.5f, \"flops\": %.6e, \"gflops_per_s\": %.1f", seconds, row.flops,
              row.flops / seconds / 1e9);
}

/// Adds up the seconds of each repeat.
void add_to(Row& sum, const Row& row) {
  sum.seconds.resize(row.seconds.size());
  for (std::size_t i = 0; i < row.seconds.size(); ++i) sum.seconds[i] += row.seconds[i];
  sum.flops += row.flops;
}

/// The steps of a turn, as `tessera bench` reads them.
void print_steps(const Report& report) {
  Row total;
  for (const Row& row : report.rows) add_to(total, row);
  for (const double seconds : total.seconds) std::printf("{\"seconds\": %.6f}\n", seconds);
}

void print_rows(const char* name, const std::vector<Row>& rows) {
  std::printf(",\n \"%s\": [", name);
  for (const Row& row : rows) {
    std::printf("%s\n  {\"name\": \"%s\", \"group\": \"%s\", \"variant\": \"%s\", ",
                &row == rows.data() ? "" : ",", row.name.c_str(), row.group.c_str(),
                row.variant.c_str());
    std::printf("\"kernel\": \"%s\", ", row.kernel.c_str());
    print_figures(row);
    std::printf("}");
  }
  std::printf("]");
}

/// One JSON object: the total, the sum of every group, and every row.
void print(const Report& report, const Options& o) {
  Row total;
  std::vector<Row> groups;
  for (const Row& row : report.rows) {
    const auto same = [&](const Row& g) { return g.group == row.group; };
    auto group = std::find_if(groups.begin(), groups.end(), same);
    if (group == groups.end()) group = groups.insert(group, Row{"all", row.group, "", "", {}, 0});
    for (Row* sum : {&*group, &total}) add_to(*sum, row);
  }
  std::printf("{\"bench\": \"gemm_floor\", \"model\": \"%s\", \"dtype\": \"%s\", ", o.model.c_str(),
              o.dtype.c_str());
  std::printf("\"threads\": %d, \"repeats\": %d, ", o.threads, o.repeats);
  std::printf("\"batch\": %ld, \"seq\": %ld, \"vocab\": %ld,\n ", long{o.batch}, long{o.seq},
              long{o.vocab});
  print_figures(total);
  std::printf(", \"pack_seconds\": %.5f", report.pack_seconds);
  print_rows("groups", groups);
  print_rows("products", report.rows);
  std::printf("}\n");
}

Options shapes_of(const std::string& model) {
  Options o;
  o.model = model;
  if (model == "bert-base") {
    o.batch = 8, o.seq = 128, o.vocab = 30522, o.head_layers = 1;
  } else if (model != "gpt2-small") {
    throw std::invalid_argument("--model is gpt2-small or bert-base, not " + model);
  }
  return o;
}

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--model") o = shapes_of(argv[i + 1]);
  }
  Dim threads = o.threads, repeats = o.repeats, steps = 0;
  const std::map<std::string, Dim*> sizes = {{"--threads", &threads}, {"--repeats", &repeats},
                                             {"--steps", &steps},     {"--batch", &o.batch},
                                             {"--seq", &o.seq},       {"--vocab", &o.vocab}};
  const std::map<std::string, std::string*> names = {{"--model", &o.model}, {"--dtype", &o.dtype}};
  for (int i = 1; i < argc; i += 2) {
    const auto name = names.find(argv[i]);
    const auto size = sizes.find(argv[i]);
    if (i + 1 < argc && name != names.end()) {
      *name->second = argv[i + 1];
    } else if (i + 1 == argc || size == sizes.end() ||
               (*size->second = std::atol(argv[i + 1])) < 1) {
      throw std::invalid_argument(
          "usage: gemm_floor [--model gpt2-small|bert-base] [--dtype f32|bf16] [--threads N] "
          "[--repeats N | --steps N] [--batch N] [--seq N] [--vocab N]");
    }
  }
  if (o.dtype != "f32" && o.dtype != "bf16")
    throw std::invalid_argument("--dtype is f32 or bf16, not " + o.dtype);
  if (o.dtype == "bf16" && !bench::multiplies_bf16())
    throw std::invalid_argument("--dtype bf16 needs a processor with AVX512-BF16 or AMX");
  if (threads > std::min(o.batch * o.heads, o.width))
    throw std::invalid_argument("--threads exceeds the work to share");
  o.threads = static_cast<int>(threads);
  o.repeats = static_cast<int>(steps > 0 ? steps : repeats);
  o.steps = steps > 0;
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options o = parse(argc, argv);
    Team team(o.threads);
    Report report;
    time_linear(report, team, o, "qkv", o.layers, o.width, 3 * o.width);
    time_linear(report, team, o, "proj", o.layers, o.width, o.width);
    time_linear(report, team, o, "up", o.layers, o.width, 4 * o.width);
    time_linear(report, team, o, "down", o.layers, 4 * o.width, o.width);
    if (o.head_layers > 0)
      time_linear(report, team, o, "head_dense", o.head_layers, o.width, o.width);
    time_linear(report, team, o, "head", 1, o.width, o.vocab);
    time_attention(report, team, o);
    o.steps ? print_steps(report) : print(report, o);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gemm_floor: %s\n", error.what());
    return 1;
  }
}
