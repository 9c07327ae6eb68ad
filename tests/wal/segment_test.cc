#include "wal/segment.h"

#include <string>
#include <vector>

#include "tests/wal/wal_fixtures.h"

namespace repotxn::wal {
namespace {

using storage::StorePath;

SegmentHeader HeaderOf(uint64_t number, Lsn first) {
  SegmentHeader header;
  header.number = number;
  header.salt = 0x1234'5678'9abc'def0;
  header.epoch = 3;
  header.first_lsn = first;
  header.supersedes_from = first;
  header.durable_lsn = first.Previous();
  return header;
}

// A segment file put together by hand.
class SegmentBuilder {
 public:
  explicit SegmentBuilder(const SegmentHeader& header)
      : header_(header), last_{header.first_lsn.Previous(), header.previous_chain} {
    bytes_ = EncodeSegmentHeader(header);
  }

  SegmentBuilder& Group(size_t entries) {
    const Lsn durable = last_.lsn;
    GroupHeader group{header_.number, last_.lsn.Next(), static_cast<uint32_t>(entries),
                      durable,        durable,          ++ordinal_};
    AppendGroupRecord(header_.salt, group, &bytes_);
    for (const SealedEntry& entry : SealRun(last_, entries)) {
      offsets_.push_back(static_cast<int64_t>(bytes_.size()));
      AppendEntryRecord(header_.salt, entry, &bytes_);
      last_ = PositionOf(entry);
    }
    return *this;
  }
  std::string File(size_t size = kSegmentBytesMin) const {
    std::string file = bytes_;
    file.resize(size, '\0');
    return file;
  }
  int64_t end() const { return static_cast<int64_t>(bytes_.size()); }
  int64_t offset(size_t entry) const { return offsets_.at(entry); }
  const SegmentHeader& header() const { return header_; }

 private:
  const SegmentHeader header_;
  LogPosition last_;
  uint64_t ordinal_ = 0;
  std::string bytes_;
  std::vector<int64_t> offsets_;
};

class SegmentTest : public ::testing::Test {
 protected:
  absl::StatusOr<SegmentScan> Scan(const std::string& file, const SegmentHeader& header) {
    const StorePath path = StorePath::Literal("1.seg");
    REPOTXN_RETURN_IF_ERROR(storage::WriteFile(fs_, path, View(file)));
    REPOTXN_ASSIGN_OR_RETURN(const auto reader, fs_.OpenForRead(path));
    return ScanSegment(*reader, header);
  }

  MemoryFileSystem fs_;
};

TEST_F(SegmentTest, KeepsHeaderAndRefusesItUnderAnotherNumber) {
  SegmentHeader header = HeaderOf(4, Lsn(9));
  const std::string bytes = EncodeSegmentHeader(header);

  ASSERT_EQ(static_cast<int64_t>(bytes.size()), kSegmentHeaderBytes);
  ASSERT_OK_AND_ASSIGN(const SegmentHeader decoded, DecodeSegmentHeader(View(bytes), 4));
  EXPECT_EQ(decoded, header);
  EXPECT_THAT(DecodeSegmentHeader(View(bytes), 5), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(SegmentTest, HeaderWithAnyByteChangedDoesNotExist) {
  const std::string bytes = EncodeSegmentHeader(HeaderOf(4, Lsn(9)));

  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
    EXPECT_THAT(DecodeSegmentHeader(View(damaged), 4), StatusIs(absl::StatusCode::kNotFound)) << i;
  }
  EXPECT_THAT(DecodeSegmentHeader(View(bytes.substr(1)), 4), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(SegmentTest, NamesAreCanonicalNumbers) {
  EXPECT_EQ(SegmentNumberOf(View(SegmentFileName(17))), 17u);
  for (const char* name : {"0.seg", "01.seg", "+1.seg", "1.sega", "1", ".seg", "-1.seg", " 1.seg",
                           "99999999999999999999999.seg"}) {
    EXPECT_EQ(SegmentNumberOf(name), 0u) << name;
  }
}

TEST_F(SegmentTest, ScansGroupsUpToCleanEnd) {
  SegmentBuilder segment(HeaderOf(1, Lsn(1)));
  segment.Group(2).Group(0).Group(3);

  ASSERT_OK_AND_ASSIGN(const SegmentScan scan, Scan(segment.File(), segment.header()));

  ASSERT_EQ(scan.entries.size(), 5u);
  EXPECT_EQ(scan.next_lsn, Lsn(6));
  EXPECT_EQ(scan.end_offset, segment.end());
  EXPECT_EQ(scan.groups, 3u);
  EXPECT_FALSE(scan.inside_group);
  EXPECT_FALSE(scan.later_group);
  EXPECT_EQ(scan.later_bytes, 0);
  EXPECT_EQ(scan.entries[4].offset, segment.offset(4));
  EXPECT_EQ(scan.chain, SealRun({}, 5).back().chain);
}

TEST_F(SegmentTest, StopsAtBadEntryAndTellsWhatStandsBehindIt) {
  SegmentBuilder segment(HeaderOf(1, Lsn(1)));
  segment.Group(2).Group(3).Group(1);
  std::string file = segment.File();
  file[static_cast<size_t>(segment.offset(1)) + 170] ^= 1;  // in the body of entry 2

  ASSERT_OK_AND_ASSIGN(const SegmentScan scan, Scan(file, segment.header()));

  EXPECT_EQ(scan.next_lsn, Lsn(2));
  EXPECT_TRUE(scan.inside_group);
  EXPECT_TRUE(scan.later_group);
  EXPECT_EQ(scan.later_durable_before, Lsn(5));
  EXPECT_EQ(scan.later_bytes, segment.end() - segment.offset(1));
}

// Hard case A17: what an earlier life of the file left behind never counts, even when it fits.
TEST_F(SegmentTest, IgnoresGhostsOfAnotherLife) {
  SegmentHeader old_life = HeaderOf(1, Lsn(1));
  SegmentHeader new_life = old_life;
  new_life.salt = 99;
  SegmentBuilder ghost(old_life);
  ghost.Group(1).Group(1);
  SegmentBuilder fresh(new_life);
  fresh.Group(1);
  // The new life wrote the first group only; the second of the old one follows with the right LSN
  // and chain.
  std::string file = ghost.File();
  file.replace(0, static_cast<size_t>(fresh.end()),
               fresh.File().substr(0, static_cast<size_t>(fresh.end())));

  ASSERT_OK_AND_ASSIGN(const SegmentScan scan, Scan(file, new_life));

  EXPECT_EQ(scan.next_lsn, Lsn(2));
  EXPECT_EQ(scan.later_bytes, 0);
}

TEST_F(SegmentTest, TellsNewerEntryFromDamage) {
  SegmentBuilder segment(HeaderOf(1, Lsn(1)));
  GroupHeader group{1, Lsn(1), 1, Lsn(0), Lsn(0), 1};
  SealedEntry entry = SealRun({}, 1).front();
  entry.header[0] = 2;  // format level
  std::string file = EncodeSegmentHeader(segment.header());
  AppendGroupRecord(segment.header().salt, group, &file);
  AppendEntryRecord(segment.header().salt, entry, &file);

  EXPECT_THAT(Scan(file, segment.header()), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(SegmentTest, ReadsEntryAtItsPlaceOnly) {
  SegmentBuilder segment(HeaderOf(1, Lsn(1)));
  segment.Group(2);
  ASSERT_OK(Scan(segment.File(), segment.header()));
  ASSERT_OK_AND_ASSIGN(const auto file, fs_.OpenForRead(StorePath::Literal("1.seg")));
  const uint64_t salt = segment.header().salt;
  std::string bytes;

  ASSERT_OK(ReadEntryRecord(*file, salt, segment.offset(1), Lsn(2), &bytes));
  EXPECT_EQ(bytes, EntryBytes(SealRun({}, 2).back()));
  EXPECT_THAT(ReadEntryRecord(*file, salt, segment.offset(1), Lsn(1), &bytes),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ReadEntryRecord(*file, salt + 1, segment.offset(1), Lsn(2), &bytes),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(ReadEntryRecord(*file, salt, segment.offset(1) + 8, Lsn(2), &bytes),
              StatusIs(absl::StatusCode::kDataLoss));
}

// A file whose header is not valid shows whether it ever had one.
TEST_F(SegmentTest, OrphanTracesTellHeaderLostFromHeaderNeverWritten) {
  SegmentBuilder begun(HeaderOf(7, Lsn(1)));
  begun.Group(1);
  SegmentBuilder used(HeaderOf(7, Lsn(1)));
  used.Group(1).Group(0);
  const StorePath path = StorePath::Literal("7.seg");
  const auto traces = [&](const SegmentBuilder& segment, uint64_t number) {
    EXPECT_OK(storage::WriteFile(fs_, path, View(segment.File())));
    return *FindOrphanTraces(**fs_.OpenForRead(path), number);
  };

  EXPECT_TRUE(traces(begun, 7).has_entries);
  EXPECT_FALSE(traces(begun, 7).proves_header);
  EXPECT_TRUE(traces(used, 7).proves_header);
  // Under another name it is a retired file.
  EXPECT_FALSE(traces(used, 8).has_entries);
  EXPECT_FALSE(traces(used, 8).proves_header);
}

}  // namespace
}  // namespace repotxn::wal
