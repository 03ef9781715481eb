/// The time of the matrix products alone of one GPT-2 small training step, in f32.
///
/// Runs only the products (forward, data gradient, weight gradient of every linear and of the
/// vocabulary head; the products of attention) by oneDNN, on threads of our own that each call it
/// with one OpenMP thread on their rows. What a trainer needs beyond this time is everything else:
/// element-wise work, packing, optimizer, waiting.
///
/// Weights are packed beforehand, in the layout oneDNN asks for, and the time is reported apart.
/// Attention counts full score matrices (a causal kernel may skip half) and keeps the probabilities
/// (a streaming kernel computes scores twice).
///
/// Build:  g++ -std=c++20 -O2 -Wall -Wextra -Wpedantic -Werror -fopenmp bench/gemm_floor.cpp
///             -ldnnl -pthread -o build/gemm_floor
/// Run:    build/gemm_floor --threads 2
#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "team.h"

namespace {

using bench::Team;
using Dim = dnnl::memory::dim;

struct Options {
  int threads = 1;
  int repeats = 3;
  Dim batch = 4, seq = 256, layers = 12, heads = 12, width = 768, vocab = 50257;
};

/// One line of the report: `seconds` is the median over repeats of all `count` products together.
struct Row {
  std::string name, group, variant;
  double seconds = 0, flops = 0;
};

struct Report {
  std::vector<Row> rows;
  double pack_seconds = 0;
};

/// Page-aligned floats, filled with numbers of [-0.5, 0.5) so that no product meets denormals.
class Buffer {
 public:
  explicit Buffer(std::size_t n)
      : data_(static_cast<float*>(std::aligned_alloc(4096, (n * 4 + 4095) / 4096 * 4096))) {
    if (!data_) throw std::bad_alloc();
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < n; ++i) {
      state = state * 1664525u + 1013904223u;
      data_.get()[i] = static_cast<float>(state >> 8) / 16777216.0f - 0.5f;
    }
  }
  float* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> data_;
};

/// A matrix, or `batch` of them back to back; element (i, j) is at i * row_stride + j * col_stride.
struct Layout {
  Dim rows, cols, row_stride, col_stride, batch = 1;

  static Layout plain(Dim rows, Dim cols, Dim batch = 1) { return {rows, cols, cols, 1, batch}; }
  Layout transposed() const { return {cols, rows, col_stride, row_stride, batch}; }
  /// Of a part: some rows of the one matrix, or some whole matrices.
  dnnl::memory::desc desc(Dim part) const {
    const auto f32 = dnnl::memory::data_type::f32;
    if (batch == 1) return {{part, cols}, f32, dnnl::memory::dims{row_stride, col_stride}};
    return {{part, rows, cols}, f32, dnnl::memory::dims{rows * cols, row_stride, col_stride}};
  }
  Dim parts() const { return batch == 1 ? rows : batch; }
  Dim part_stride() const { return batch == 1 ? row_stride : rows * cols; }
  Dim at(Dim n, Dim i, Dim j) const { return n * rows * cols + i * row_stride + j * col_stride; }
};

enum class PackB { No, Yes };

/// C = A B for layouts fixed in advance, cut over the team by rows of C, or by whole matrices when
/// batched.
class Product {
 public:
  Product(const dnnl::engine& engine, int threads, Layout a, Layout b, PackB pack)
      : engine_(engine), a_(a), b_(b), c_(Layout::plain(a.rows, b.cols, a.batch)) {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    const bool batched = a.batch > 1;
    if (!batched) b_desc_ = b.desc(b.rows);
    if (pack == PackB::Yes) {
      b_desc_ = {{b.rows, b.cols}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
    }
    for (int t = 0; t < threads; ++t) {
      Part part;
      part.begin = a.parts() * t / threads;
      const Dim n = a.parts() * (t + 1) / threads - part.begin;
      part.a = a.desc(n);
      part.c = c_.desc(n);
      const dnnl::matmul::primitive_desc pd({part.a, batched ? b.desc(n) : b_desc_, part.c}, attr,
                                            engine_);
      part.b = pd.weights_desc();
      if (!batched) b_desc_ = part.b;  // the first part's choice of layout binds the others
      part.matmul = dnnl::matmul(pd);
      part.scratch = dnnl::memory(pd.scratchpad_desc(), engine_);
      parts_.push_back(std::move(part));
    }
  }

  double flops() const {
    return 2.0 * static_cast<double>(a_.batch * a_.rows) * static_cast<double>(b_.rows * b_.cols);
  }
  std::size_t packed_floats() const { return b_desc_.get_size() / sizeof(float); }

  /// Packs B with one thread.
  void pack(float* from, float* to) const {
    dnnl::stream stream(engine_);
    dnnl::memory source(b_.desc(b_.rows), engine_, from), target(b_desc_, engine_, to);
    dnnl::reorder(source, target).execute(stream, source, target);
    stream.wait();
  }

  /// Thread `t`'s part of C; `b` is packed if that was asked for.
  void run(int t, float* a, float* b, float* c) {
    Part& part = parts_[static_cast<std::size_t>(t)];
    a += part.begin * a_.part_stride();
    b += part.begin * (b_.batch == 1 ? 0 : b_.part_stride());
    c += part.begin * c_.part_stride();
    dnnl::stream stream(engine_);
    part.matmul.execute(stream, {{DNNL_ARG_SRC, {part.a, engine_, a}},
                                 {DNNL_ARG_WEIGHTS, {part.b, engine_, b}},
                                 {DNNL_ARG_DST, {part.c, engine_, c}},
                                 {DNNL_ARG_SCRATCHPAD, part.scratch}});
    stream.wait();
  }

  /// Compares a few elements of C with plain sums; `b` is not packed.
  void check(const float* a, const float* b, const float* c) const {
    for (Dim s = 0; s < 7; ++s) {
      const Dim n = (c_.batch - 1) * s / 6, i = (c_.rows - 1) * s / 6, j = (c_.cols - 1) * s / 6;
      double sum = 0, size = 0;
      for (Dim k = 0; k < a_.cols; ++k) {
        const double term = double{a[a_.at(n, i, k)]} * double{b[b_.at(n, k, j)]};
        sum += term;
        size += std::abs(term);
      }
      // f32 keeps 24 bits; even 50,000 sums in a row lose far less than this in practice.
      if (!(std::abs(sum - double{c[c_.at(n, i, j)]}) <= 1e-5 * size)) {
        throw std::runtime_error("oneDNN's product differs from a plain sum");
      }
    }
  }

 private:
  struct Part {
    Dim begin = 0;
    dnnl::memory::desc a, b, c;
    dnnl::matmul matmul;
    dnnl::memory scratch;
  };
  dnnl::engine engine_;
  Layout a_, b_, c_;
  dnnl::memory::desc b_desc_;
  std::vector<Part> parts_;
};

/// Seconds that `work` takes: the median of `repeats` runs after one that is not counted.
double median_seconds(int repeats, const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i <= repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (i > 0) seconds.push_back(took.count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Runs the product once for each element of the three lists, the whole team on each.
double median_seconds(int repeats, Team& team, Product& product, const std::vector<Buffer>& a,
                      const std::vector<Buffer>& b, const std::vector<Buffer>& c) {
  return median_seconds(repeats, [&] {
    for (std::size_t i = 0; i < c.size(); ++i) {
      team.run([&](int t) { product.run(t, a[i].get(), b[i].get(), c[i].get()); });
    }
  });
}

std::vector<Buffer> buffers(Dim count, std::size_t floats) {
  std::vector<Buffer> out;
  for (Dim i = 0; i < count; ++i) out.emplace_back(floats);
  return out;
}

/// Packs every weight, the weights shared out over the team; returns the seconds.
double pack_all(Team& team, const Product& product, const std::vector<Buffer>& from,
                const std::vector<Buffer>& to) {
  return median_seconds(1, [&] {
    team.run([&](int t) {
      for (std::size_t i = static_cast<std::size_t>(t); i < from.size();
           i += static_cast<std::size_t>(team.size())) {
        product.pack(from[i].get(), to[i].get());
      }
    });
  });
}

/// `count` layers y = x W^T, each with buffers of its own so that no layer finds its weights in the
/// cache.
void time_linear(Report& report, Team& team, const Options& o, const std::string& name, Dim count,
                 Dim in, Dim out) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const Dim tokens = o.batch * o.seq;
  const Layout x = Layout::plain(tokens, in), y = Layout::plain(tokens, out);
  const Layout w = Layout::plain(out, in);
  const auto xs = buffers(count, static_cast<std::size_t>(tokens * in));
  const auto ys = buffers(count, static_cast<std::size_t>(tokens * out));
  const auto ws = buffers(count, static_cast<std::size_t>(out * in));
  const auto add = [&](const std::string& group, const std::string& variant, double seconds,
                       double flops) {
    report.rows.push_back({name, group, variant, seconds, flops * static_cast<double>(count)});
  };
  {
    Product forward(engine, team.size(), x, w.transposed(), PackB::Yes);
    const auto packed = buffers(count, forward.packed_floats());
    report.pack_seconds += pack_all(team, forward, ws, packed);
    add("forward", "packed", median_seconds(o.repeats, team, forward, xs, packed, ys),
        forward.flops());
    forward.check(xs[0].get(), ws[0].get(), ys[0].get());
  }
  {
    Product data(engine, team.size(), y, w, PackB::Yes);  // dx = dy W, over x, with y as dy
    const auto packed = buffers(count, data.packed_floats());
    report.pack_seconds += pack_all(team, data, ws, packed);
    add("data_gradient", "packed", median_seconds(o.repeats, team, data, ys, packed, xs),
        data.flops());
    data.check(ys[0].get(), ws[0].get(), xs[0].get());
  }
  // dW = dy^T x, or its transpose x^T dy: whichever runs faster; a trainer may store either.
  Product direct(engine, team.size(), y.transposed(), x, PackB::No);
  Product swapped(engine, team.size(), x.transposed(), y, PackB::No);
  const double direct_seconds = median_seconds(o.repeats, team, direct, ys, xs, ws);
  direct.check(ys[0].get(), xs[0].get(), ws[0].get());
  const double swapped_seconds = median_seconds(o.repeats, team, swapped, xs, ys, ws);
  swapped.check(xs[0].get(), ys[0].get(), ws[0].get());
  const bool first = direct_seconds <= swapped_seconds;
  add("weight_gradient", first ? "dy^T x" : "x^T dy", std::min(direct_seconds, swapped_seconds),
      direct.flops());
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
    Product product(engine, team.size(), c.a, c.b, PackB::No);
    const auto floats = [&](Dim rows, Dim cols) {
      return static_cast<std::size_t>(n * rows * cols);
    };
    const auto as = buffers(o.layers, floats(c.a.rows, c.a.cols));
    const auto bs = buffers(o.layers, floats(c.b.rows, c.b.cols));
    const auto cs = buffers(o.layers, floats(c.a.rows, c.b.cols));
    const double seconds = median_seconds(o.repeats, team, product, as, bs, cs);
    product.check(as[0].get(), bs[0].get(), cs[0].get());
    report.rows.push_back(
        {c.name, c.group, "", seconds, product.flops() * static_cast<double>(o.layers)});
  }
}

void print_figures(const Row& row) {
  std::printf("\"seconds\": %.5f, \"flops\": %.6e, \"gflops_per_s\": %.1f", row.seconds, row.flops,
              row.flops / row.seconds / 1e9);
}

void print_rows(const char* name, const std::vector<Row>& rows) {
  std::printf(",\n \"%s\": [", name);
  for (const Row& row : rows) {
    std::printf("%s\n  {\"name\": \"%s\", \"group\": \"%s\", \"variant\": \"%s\", ",
                &row == rows.data() ? "" : ",", row.name.c_str(), row.group.c_str(),
                row.variant.c_str());
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
    if (group == groups.end()) group = groups.insert(group, Row{"all", row.group, "", 0, 0});
    for (Row* sum : {&*group, &total}) {
      sum->seconds += row.seconds;
      sum->flops += row.flops;
    }
  }
  std::printf("{\"bench\": \"gemm_floor\", \"dtype\": \"f32\", \"threads\": %d, \"repeats\": %d, ",
              o.threads, o.repeats);
  std::printf("\"batch\": %ld, \"seq\": %ld, \"vocab\": %ld,\n ", long{o.batch}, long{o.seq},
              long{o.vocab});
  print_figures(total);
  std::printf(", \"pack_seconds\": %.5f", report.pack_seconds);
  print_rows("groups", groups);
  print_rows("products", report.rows);
  std::printf("}\n");
}

Options parse(int argc, char** argv) {
  Options o;
  Dim threads = o.threads, repeats = o.repeats;
  const std::map<std::string, Dim*> flags = {{"--threads", &threads},
                                             {"--repeats", &repeats},
                                             {"--batch", &o.batch},
                                             {"--seq", &o.seq},
                                             {"--vocab", &o.vocab}};
  for (int i = 1; i < argc; i += 2) {
    const auto flag = flags.find(argv[i]);
    if (flag == flags.end() || i + 1 == argc || (*flag->second = std::atol(argv[i + 1])) < 1) {
      throw std::invalid_argument(
          "usage: gemm_floor [--threads N] [--repeats N] [--batch N] [--seq N] [--vocab N]");
    }
  }
  if (threads > std::min(o.batch * o.heads, o.width))
    throw std::invalid_argument("--threads exceeds the work to share");
  o.threads = static_cast<int>(threads);
  o.repeats = static_cast<int>(repeats);
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
    time_linear(report, team, o, "head", 1, o.width, o.vocab);
    time_attention(report, team, o);
    print(report, o);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gemm_floor: %s\n", error.what());
    return 1;
  }
}
