#include "tessera/files/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

/// The bytes of a file with this header and as many data bytes: 0, 1, 2, ...
std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string out(8, '\0');
  const std::uint64_t n = header.size();
  std::memcpy(out.data(), &n, 8);
  out += header;
  for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
  return out;
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return text('"', name, R"(":{"dtype":")", dtype, R"(","shape":[)", shape, R"(],"data_offsets":[)",
              offsets, "]}");
}

/// The error of opening a file of these bytes; "" where it opens.
std::string opened(const std::string& bytes) {
  const TestFolder folder;
  const std::string path = folder / "m.safetensors";
  std::ofstream(path) << bytes;  // thousands of files: not one flushed to disk
  std::string message = message_of([&] { SafetensorsFile file(path); });
  if (message.empty()) return "";
  const std::size_t at = message.find(path);
  EXPECT_NE(at, std::string::npos) << "the file is not named: " << message;
  return at == std::string::npos ? message : message.replace(at, path.size(), "FILE");
}

TEST(Safetensors, GoodHeaders) {
  struct Case {
    const char* name;
    std::string header;
    std::size_t data, tensors;
  };
  const std::string x = entry("x", "I32", "2,2", "0,16");
  const Case cases[] = {
      {"one tensor", "{" + x + "}", 16, 1},
      {"no tensors", "{}", 0, 0},
      {"an empty tensor", "{" + entry("x", "I32", "2,0", "0,0") + "}", 0, 1},
      {"a scalar", "{" + entry("x", "F64", "", "0,8") + "}", 8, 1},
      {"blanks around", " \n{" + x + "}  \t", 16, 1},
      {"data in another order than names",
       "{" + entry("a", "BOOL", "3", "2,5") + "," + entry("b", "BF16", "1", "0,2") + "}", 5, 2},
      {"an empty tensor between",
       "{" + entry("a", "F16", "1", "0,2") + "," + entry("e", "F32", "0", "2,2") + "," +
           entry("z", "F16", "1", "2,4") + "}",
       4, 3},
      {"metadata", R"({"__metadata__":{"format":"pt","dtype":"x"},)" + x + "}", 16, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const TestFolder folder;
    write_atomically(folder / "m", file_of(c.header, c.data));
    const SafetensorsFile file(folder / "m");
    ASSERT_EQ(file.tensors().size(), c.tensors);
    for (std::size_t i = 1; i < c.tensors; ++i)
      EXPECT_EQ(file.tensors()[i].begin, file.tensors()[i - 1].end);
  }
}

TEST(Safetensors, BadFiles) {
  struct Case {
    const char* name;
    std::string bytes, message;
  };
  const std::string x = entry("x", "I32", "2,2", "0,16");
  const std::string damaged = "; the file is damaged", other = damaged + " or of another format";
  const auto file_says = [](const std::string& rest) { return "safetensors file 'FILE': " + rest; };
  const auto x_says = [](const std::string& rest) {
    return "safetensors file 'FILE', tensor 'x': " + rest;
  };
  const auto one = [](const std::string& line) { return file_of("{" + line + "}", 16); };
  std::string many_ones;
  for (int i = 0; i < 100; ++i) many_ones += ",1";
  const std::string many = std::string(10'000, '[');
  const Case cases[] = {
      {"too small", "1234567",
       file_says("it has 7 bytes, too few for the 8 that give the header's length; it was cut "
                 "short or is of another format")},
      {"too large", std::string(8, '\xFF'),
       file_says(
           "its header would be 18446744073709551615 bytes long but at most 100000000 are allowed" +
           other)},
      {"longer than the file", file_of("{" + x + "}", 0).substr(0, 20),
       file_says("its header of 57 bytes is longer than the file of 20 bytes; it was cut short: "
                 "copy or make it again")},
      {"not UTF-8", file_of("{\"\xFF\"}", 0),
       file_says("the header is not UTF-8 at its byte 2" + other)},
      {"not JSON", file_of("hello", 0),
       file_says("the header is not JSON: it does not begin with {" + other)},
      {"empty header", file_of("", 0),
       file_says("the header is not JSON: it does not begin with {" + other)},
      {"JSON that does not end", file_of("{\"x\":", 0),
       file_says("the header is not JSON at its byte 6" + other)},
      {"a second value", file_of("{} {}", 0),
       file_says("the header is not JSON at its byte 4" + other)},
      {"zero bytes would hide what follows", file_of(std::string("{}\0{", 4), 0),
       file_says("the header is not JSON: byte 2 is zero" + other)},
      {"two of one name", one(x + "," + x), x_says("the header names it twice" + damaged)},
      {"two metadata", one(R"("__metadata__":{},"__metadata__":{})"),
       "safetensors file 'FILE', tensor '__metadata__': the header names it twice" + damaged},
      {"two of one key in metadata", one(R"("__metadata__":{"a":"b","a":"b"})"),
       file_says("the header has a second value in the entry '__metadata__' as a, which the format "
                 "does not allow" +
                 other)},
      {"metadata that is not a string", one(R"("__metadata__":{"a":1})"),
       file_says("the header has a number in the entry '__metadata__' as a, which the format does "
                 "not allow" +
                 other)},
      {"two shapes", one(R"("x":{"shape":[],"shape":[]})"),
       file_says("the header has a second value in the entry 'x' as shape, which the format does "
                 "not allow" +
                 other)},
      {"an unknown field", one(R"("x":{"strides":[1]})"),
       file_says("the header has an unknown field in the entry 'x' as strides, which the format "
                 "does not allow" +
                 other)},
      {"an entry that is not an object", one(R"("x":7)"),
       file_says("the header has a number as the entry 'x', which the format does not allow" +
                 other)},
      {"an entry that is null", one(R"("x":null)"),
       file_says("the header has null as the entry 'x', which the format does not allow" + other)},
      {"nested objects", one(R"("x":{"shape":{}})"),
       file_says("the header has an object nested too deep in the entry 'x' as shape, which the "
                 "format does not allow" +
                 other)},
      {"nested lists", one(R"("x":{"shape":)" + many),
       file_says(
           "the header has a list in the entry 'x' as shape, which the format does not allow" +
           other)},
      {"a negative size", one(entry("x", "I32", "-2", "0,16")),
       file_says("the header has a negative number, -2 in the entry 'x' as shape, which the format "
                 "does not allow" +
                 other)},
      {"a fractional size", one(entry("x", "I32", "2.5", "0,16")),
       file_says("the header has '2.5', not a whole number of 64 bits in the entry 'x' as shape, "
                 "which the format does not allow" +
                 other)},
      {"a size of more than 64 bits", one(entry("x", "I32", "18446744073709551616", "0,16")),
       file_says("the header has '18446744073709551616', not a whole number of 64 bits in the "
                 "entry 'x' as shape, which the "
                 "format does not allow" +
                 other)},
      {"a dtype that is a list", one(R"("x":{"dtype":[1]})"),
       file_says(
           "the header has a list in the entry 'x' as dtype, which the format does not allow" +
           other)},
      {"a shape that is a string", one(R"("x":{"shape":"2"})"),
       file_says(
           "the header has a string in the entry 'x' as shape, which the format does not allow" +
           other)},
      {"no dtype", one(R"("x":{"shape":[4],"data_offsets":[0,16]})"),
       x_says("its dtype is missing" + damaged)},
      {"no shape", one(R"("x":{"dtype":"I32","data_offsets":[0,16]})"),
       x_says("its shape is missing" + damaged)},
      {"no offsets", one(R"("x":{"dtype":"I32","shape":[4]})"),
       x_says("its data_offsets is missing" + damaged)},
      {"offsets swapped", one(entry("x", "I32", "4", "16,0")),
       x_says("data_offsets [16, 0] are not a begin and an end" + damaged)},
      {"three offsets", one(entry("x", "I32", "4", "0,8,16")),
       x_says("data_offsets [0, 8, 16] are not a begin and an end" + damaged)},
      {"offsets of 2^63", one(entry("x", "I32", "4", "0,9223372036854775808")),
       x_says("data_offsets [0, 9223372036854775808] are not a begin and an end" + damaged)},
      {"offsets and shape differ", one(entry("x", "I32", "2,2", "0,12")),
       x_says("i32[2,2] takes 16 bytes but data_offsets [0, 12] hold 12" + damaged)},
      {"offsets and dtype differ", one(entry("x", "F64", "2,2", "0,16")),
       x_says("f64[2,2] takes 32 bytes but data_offsets [0, 16] hold 16" + damaged)},
      {"the size overflows", one(entry("x", "I32", "2,18446744073709551614", "0,16")),
       x_says("the size of shape [2, 18446744073709551614] overflows 64 bits" + damaged)},
      {"the product overflows to the right size",
       one(entry("x", "I32", "4611686018427387904,4", "0,0")),
       x_says("the size of shape [4611686018427387904, 4] overflows 64 bits" + damaged)},
      {"too many dims", one(entry("x", "I32", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,4", "0,16")),
       x_says("it has 15 dims but at most 14 are supported")},
      {"an endless list", one(R"("x":{"shape":[1)" + many_ones),
       file_says(
           "the header has a list of more than 64 numbers in the entry 'x' as shape, which the "
           "format does not allow" +
           other)},
      {"a dtype of another world", one(entry("x", "F8_E4M3", "16", "0,16")),
       x_says("dtype F8_E4M3 is not supported; supported are F32, F64, BF16, F16, I32, I64, BOOL: "
              "convert the tensor to "
              "one of them")},
      {"a gap at the front", one(entry("x", "I32", "2", "8,16")),
       x_says("it begins at data byte 8 but the tensor before it ends at 0; tensors must not "
              "overlap or leave gaps: the file is damaged")},
      {"an overlap", one(entry("a", "I32", "2", "0,8") + "," + entry("x", "I32", "3", "4,16")),
       x_says("it begins at data byte 4 but the tensor before it ends at 8; tensors must not "
              "overlap or leave gaps: the file is damaged")},
      {"two names of the same bytes",
       one(entry("a", "I32", "4", "0,16") + "," + entry("x", "I32", "4", "0,16")),
       x_says("it begins at data byte 0 but the tensor before it ends at 16; tensors must not "
              "overlap or leave gaps: the file is damaged")},
      {"data cut short", file_of("{" + x + "}", 15),
       x_says("it ends at data byte 16 but the file holds only 15 data bytes; the file was cut "
              "short: copy or make it "
              "again")},
      {"junk behind", file_of("{" + x + "}", 17),
       file_says("its tensors end at data byte 16 but the file holds 17 data bytes; the rest "
                 "belongs to no tensor: the file is damaged")},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(opened(c.bytes), c.message);
  }
}

TEST(Safetensors, CutAnywhereIsAnError) {
  const std::string bytes = file_of(
      "{" + entry("a", "F32", "2,2", "0,16") + "," + entry("b", "I64", "1", "16,24") + "}   ", 24);
  EXPECT_EQ(opened(bytes), "");
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_NE(opened(bytes.substr(0, n)), "") << n;
}

TEST(Safetensors, AnyByteChangedIsAnErrorOrAnotherGoodFile) {
  // What must not happen is a crash or an endless allocation; a renamed tensor is still a good
  // file.
  const std::string good = file_of(
      "{" + entry("a", "F32", "2,2", "0,16") + "," + entry("b", "I64", "1", "16,24") + "}", 24);
  int refused = 0;
  for (std::size_t i = 0; i < good.size() - 24; ++i) {
    for (const int flip : {0x01, 0x20, 0x80, 0xFF}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      refused += opened(bytes) != "";
    }
  }
  EXPECT_GT(refused, 400);
}

TEST(Safetensors, WrittenFilesAreReadBack) {
  const std::vector<float> w = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> steps = {1'000'000'000'000};
  const auto bytes_of = [](const auto& values) { return std::as_bytes(std::span(values)); };
  const std::vector<std::byte> mask = {std::byte{1}, std::byte{0}, std::byte{1}};
  const TestFolder folder;
  write_safetensors(folder / "m",
                    {TensorSource::of("w", {DType::F32, {2, 3}, {}}, bytes_of(w)),
                     TensorSource::of("mask", {DType::Bool, {3}, {}}, bytes_of(mask)),
                     TensorSource::of("steps", {DType::I64, {}, {}}, bytes_of(steps)),
                     TensorSource::of("empty \"\u00e9\"", {DType::BF16, {0, 4}, {}}, {})},
                    {{"format", "pt"}, {"a", "b"}});
  const SafetensorsFile file(folder / "m");
  EXPECT_EQ(file.metadata(), (SafetensorsMetadata{{"a", "b"}, {"format", "pt"}}));
  std::vector<std::string>
      order;  // wide first, so that each begins at a multiple of its element's size
  for (const StoredTensor& t : file.tensors())
    order.push_back(text(t.name, " ", t.type, " ", t.begin));
  EXPECT_EQ(order, (std::vector<std::string>{"steps i64[] 0", "w f32[2,3] 8",
                                             "empty \"\u00e9\" bf16[0,4] 32", "mask bool[3] 32"}));
  const HostTensor back = file.load("w");
  EXPECT_EQ(std::vector<float>(back.data<float>(), back.data<float>() + 6), w);
  EXPECT_EQ(file.load("steps").data<std::int64_t>()[0], steps[0]);
  std::vector<float> part(2);
  file.read(file.at("w"), 8, std::as_writable_bytes(std::span(part)));
  EXPECT_EQ(part, (std::vector<float>{3, 4}));
  EXPECT_THROW(file.read(file.at("w"), 20, std::as_writable_bytes(std::span(part))), Broken);
  EXPECT_EQ(file.find("nope"), nullptr);
  EXPECT_EQ(message_of([&] { file.at("maks"); }),
            "safetensors file '" + folder.path() +
                "/m' has no tensor 'maks' among its 4; near names: mask");
}

TEST(Safetensors, BytesDoNotDependOnTheOrderOfTensors) {
  const std::vector<float> v = {1, 2};
  const TensorSource a = TensorSource::of("a", {DType::F32, {2}, {}}, std::as_bytes(std::span(v)));
  const TensorSource b =
      TensorSource::of("b", {DType::F32, {1, 2}, {}}, std::as_bytes(std::span(v)));
  const auto written = [](std::vector<TensorSource> tensors) {
    std::string out;
    write_safetensors(
        [&](std::span<const std::byte> bytes) {
          out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        },
        std::move(tensors), {});
    return out;
  };
  EXPECT_EQ(written({a, b}), written({b, a}));
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}})";
  const std::string bytes = written({a, b});
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  EXPECT_EQ(bytes.size() % 8, 0u);
  EXPECT_EQ(bytes[8], '{');
  EXPECT_EQ(written({}).substr(8), "{}      ");
}

TEST(Safetensors, LargeTensorsArriveInPieces) {
  const std::int64_t n = 5 << 20;
  std::vector<std::int64_t> firsts;
  std::size_t total = 0;
  write_safetensors([&](std::span<const std::byte> bytes) { total += bytes.size(); },
                    {{"x",
                      {DType::F32, {n}, {}},
                      [&](std::int64_t first, std::span<std::byte>) { firsts.push_back(first); }}},
                    {});
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 8 << 20, 16 << 20}));
  EXPECT_EQ(total % 8, 0u);
  EXPECT_GT(total, static_cast<std::size_t>(n) * 4);
}

TEST(Safetensors, WritersMistakes) {
  const auto writes = [](const std::string& name, const std::string& other,
                         const SafetensorsMetadata& metadata) {
    return message_of([&] {
      write_safetensors([](std::span<const std::byte>) {},
                        {TensorSource::of(name, {DType::F32, {0}, {}}, {}),
                         TensorSource::of(other, {DType::Bool, {0}, {}}, {})},
                        metadata);
    });
  };
  EXPECT_EQ(writes("a", "b", {}), "");
  EXPECT_EQ(writes("a", "a", {}), "safetensors: two tensors are named 'a'; rename one");
  EXPECT_EQ(writes("a", "__metadata__", {}),
            "safetensors: '__metadata__' cannot be a tensor's name; rename it");
  EXPECT_EQ(writes("a\xFF", "b", {}),
            "safetensors: a tensor's name or the metadata is not UTF-8; rename it");
  EXPECT_EQ(writes("a", "b", {{"k", "\xFF"}}),
            "safetensors: a tensor's name or the metadata is not UTF-8; rename it");
}

TEST(Safetensors, FilesOfOtherPrograms) {
  struct Case {
    const char* file;
    std::size_t tensors;
    const char *name, *type;
    std::size_t metadata;
  };
  const Case cases[] = {
      {"safetensors-tiny/mlp-f32-1.safetensors", 3, "proj/gate_proj/weight", "f32[4,8]", 0},
      {"safetensors-tiny/mlp-f32-2.safetensors", 3, "proj/down/w", "f32[8,4]", 0},
      {"safetensors-tiny/mlp-with-metadata.safetensors", 4, "fc2.weight", "f32[10,20]", 2}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.file);
    const std::string path = test_data(c.file);
    if (path.empty()) GTEST_SKIP() << no_test_data(c.file);
    const SafetensorsFile file(path);
    EXPECT_EQ(file.tensors().size(), c.tensors);
    EXPECT_EQ(file.metadata().size(), c.metadata);
    EXPECT_EQ(to_text(file.at(c.name).type), c.type);
    const HostTensor values = file.load(c.name);
    for (std::int64_t i = 0; i < values.numel(); ++i) EXPECT_LT(std::abs(values.at(i)), 10);

    // Written again, it holds the same tensors.
    std::vector<TensorSource> sources;
    for (const StoredTensor& t : file.tensors()) {
      sources.push_back({t.name, t.type, [&](std::int64_t first, std::span<std::byte> out) {
                           file.read(t, first, out);
                         }});
    }
    const TestFolder folder;
    write_safetensors(folder / "copy", sources, file.metadata());
    EXPECT_EQ(SafetensorsFile(folder / "copy").tensors(), file.tensors());
    EXPECT_EQ(read_file(folder / "copy").size(), read_file(path).size());
  }
}

}  // namespace
}  // namespace tessera
