// Two recordings into one file.
#include "storage/file_claim.h"

#include "tests/storage/trace_fixture.h"

namespace acltape::storage {
namespace {

TEST_F(TraceTest, AFileThatIsBeingRecordedIsNotOverwritten) {
  Writer first(Path(), WriterOptions());
  Fill(first);
  Writer::Options options = WriterOptions();
  options.overwrite = true;
  EXPECT_EQ(ErrorOf([&] { Writer second(Path(), options); }),
            std::make_pair(4, "'" + Path() +
                                  "' is being recorded by another process; wait for it, or name "
                                  "another file"));
  first.Finish("complete");
  EXPECT_EQ(Reader(Path()).Calls(false).size(), 8u);
}

TEST_F(TraceTest, AFileWhoseRecordingHasEndedIsOverwritten) {
  Make();
  Writer::Options options = WriterOptions();
  options.overwrite = true;
  { Writer second(Path(), options); }
  EXPECT_EQ(Reader(Path()).Calls(false).size(), 0u);
}

}  // namespace
}  // namespace acltape::storage
