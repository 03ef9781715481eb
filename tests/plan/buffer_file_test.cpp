/// Files of buffers in MiniMalloc's format.

#include "tessera/plan/buffer_file.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"

namespace tessera {
namespace {

TEST(BufferFile, ColumnsInAnyOrderAndOthersKept) {
  const BufferFile file = parse_buffer_file(
      "size,note,id,upper,lower,alignment\r\n8,first one,a,3,0,\r\n\r\n4,,b,9,3,64\r\n", "f.csv");
  ASSERT_EQ(file.buffers.size(), 2u);
  EXPECT_EQ(file.buffers[0].bytes, 8);
  EXPECT_EQ(file.buffers[0].alignment, 1);
  EXPECT_EQ(file.buffers[1].lower, 3);
  EXPECT_EQ(file.buffers[1].upper, 9);
  EXPECT_EQ(file.buffers[1].alignment, 64);
  EXPECT_EQ(to_text(file, std::vector<std::int64_t>{0, 64}),
            "size,note,id,upper,lower,alignment,offset\n8,first one,a,3,0,,0\n4,,b,9,3,64,64\n");
}

TEST(BufferFile, OtherNamesAndPlacesThatAreGiven) {
  const BufferFile file =
      parse_buffer_file("note,buffer_id,start,end,size,offset\n,a,0,2,8,16\n,b,3,3,4,\n", "f.csv");
  EXPECT_EQ(file.buffers[0].upper, 3) << "the end is alive";
  EXPECT_EQ(file.buffers[0].offset, 16);
  EXPECT_EQ(file.buffers[1].offset, std::nullopt);
  EXPECT_EQ(to_text(file, std::vector<std::int64_t>{16, 0}),
            "note,buffer_id,start,end,size,offset\n,a,0,2,8,16\n,b,3,3,4,0\n");
}

TEST(BufferFile, ByteOrderMarkIsLeftOut) {
  const BufferFile file = parse_buffer_file("\xEF\xBB\xBFid,lower,upper,size\na,0,3,8\n", "f.csv");
  EXPECT_EQ(to_text(file, std::vector<std::int64_t>{0}), "id,lower,upper,size,offset\na,0,3,8,0\n");
}

TEST(BufferFile, BadFilesAreRefused) {
  const std::string head = "id,lower,upper,size\n";
  struct Row {
    std::string text;
    const char* message;
  };
  for (const Row& row : {
           Row{"", "'f.csv' has no buffers"},
           Row{head, "'f.csv' has no buffers"},
           Row{"id,lower,size\n", "'f.csv', line 1 has no column 'upper'"},
           Row{"id,lower,upper,size,begin\n", "line 1 has the column 'lower' twice"},
           Row{head + "a,0,3\n", "line 2 has 3 cells, and the first line names 4 columns"},
           Row{head + "a,0,3,8\n\na,4,5,8\n", "line 4 has the id 'a', as line 2 has"},
           Row{head + ",3,4,8\n", "line 2 has no id"},
           Row{head + "a,3,3,8\n", "line 2 has a lifetime from 3 to 3"},
           Row{head + "a,4,3,8\n", "line 2 has a lifetime from 4 to 3"},
           Row{head + "a,0,3,-8\n", "line 2 has size '-8'; give a whole number from 0 to 2^62"},
           Row{head + "a,0,3,8.5\n", "line 2 has size '8.5'"},
           Row{head + "a,0,3,\n", "line 2 has size ''"},
           Row{head + "a,x,3,8\n", "line 2 has lower 'x'"},
           Row{head + "a,0,3,4611686018427387905\n", "line 2 has size '4611686018427387905'"},
           Row{head + "a,0,3,2305843009213693952\nb,5,6,1\n",
               "line 3 makes the bytes of all buffers, with"},
           Row{"id,lower,upper,size,offset\na,0,3,8,2305843009213693945\n",
               "line 2 makes the bytes of all buffers, with"},
           Row{"id,lower,upper,size,alignment\na,0,3,8,0\n", "line 2 has alignment '0'"},
           Row{"id,lower,upper,size,alignment,offset\na,0,3,8,4,6\n",
               "line 2 has offset 6, which is not a multiple of its alignment, 4"},
           Row{"id,lower,upper,size,offset\na,0,3,8,4\nb,3,5,8,4\nc,2,4,4,0\nd,1,2,8,11\n",
               "'f.csv', line 5 has an offset at which it overlaps line 2, and both are alive at "
               "time 1; give one of them another"},
           Row{"id,lower,upper,size,offset\na,3,9,8,0\n\nb,0,4,8,7\n",
               "line 4 has an offset at which it overlaps line 2, and both are alive at time 3"},
           Row{"id,lower,upper,size,gaps\na,0,3,8,1-2\n", "line 2 has gaps in a lifetime"},
       }) {
    SCOPED_TRACE(row.text);
    try {
      parse_buffer_file(row.text, "f.csv");
      ADD_FAILURE() << "was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Data);
      EXPECT_NE(std::string(error.what()).find(row.message), std::string::npos) << error.what();
    }
  }
}

TEST(BufferFile, WithAsManyBytesAsAFileMayHaveIsWrittenAndReadBack) {
  const std::string half = "1152921504606846976";
  const BufferFile file =
      parse_buffer_file("id,lower,upper,size\na,0,3," + half + "\nb,0,3," + half + "\n", "f.csv");
  const FoundLayout found = search_layout(file.buffers, kMostBufferBytes, 100);
  ASSERT_EQ(found.outcome, LayoutOutcome::Found);
  const BufferFile placed = parse_buffer_file(to_text(file, found.offsets), "placed.csv");
  EXPECT_EQ(search_layout(placed.buffers, kMostBufferBytes, 100).height, kMostBufferBytes);
}

}  // namespace
}  // namespace tessera
