// Short ways to make object ids and repository directories for the tests of this folder.
#ifndef REPOTXN_TESTS_REFS_REF_TEST_UTIL_H_
#define REPOTXN_TESTS_REFS_REF_TEST_UTIL_H_

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "refs/packed_refs.h"
#include "refs/ref_name.h"
#include "refs/ref_value.h"
#include "storage/file_system.h"
#include "storage/id128.h"
#include "tests/support/status_matchers.h"
#include "wal/operation.h"

namespace repotxn::testing {

// 40 hex digits that begin with the number, so that differing numbers differ.
inline std::string HexOfNumber(uint64_t number) {
  std::string hex(40, 'a');
  for (size_t i = 0; i < 16; ++i) hex[i] = "0123456789abcdef"[(number >> (4 * (15 - i))) & 15];
  return hex;
}
inline ObjectId OidOf(uint64_t number) {
  return ObjectId::FromHex(HexOfNumber(number), ObjectFormat::kSha1).value();
}
inline std::string OidBytes(uint64_t number) {
  const ObjectId oid = OidOf(number);
  return std::string(oid.bytes().data(), oid.bytes().size());
}
inline refs::RefValue ValueOf(uint64_t number) { return refs::RefValue::Object(OidOf(number)); }
inline refs::RefValue SymbolicTo(const std::string& target) {
  return refs::RefValue::Symbolic(refs::RefName::Literal(target));
}
inline RepositoryId RepositoryIdOf(uint8_t number) {
  std::array<uint8_t, 16> bytes{};
  bytes[0] = number;
  return RepositoryId(bytes);
}

// Writes a file with its parent directories.
inline void PutBytes(storage::FileSystem& fs, const std::string& path, const std::string& bytes) {
  const auto parsed = storage::StorePath::Parse(path).value();
  ASSERT_OK(storage::MakeDirectories(fs, parsed.Parent()));
  ASSERT_OK(storage::WriteFile(fs, parsed, bytes));
}

// Replaces packed-refs as its one writer does: under another name, then renamed.
inline void ReplacePackedRefs(storage::FileSystem& fs, const std::string& repository,
                              const std::string& bytes) {
  const auto to = storage::StorePath::Parse(repository + "/packed-refs").value();
  const auto from = storage::StorePath::Literal("new-packed-refs");
  ASSERT_OK(storage::WriteFile(fs, from, bytes));
  ASSERT_OK(fs.Rename(from, to));
}

// Applies ref operations of one repository to its directory, in order, as the materializer must.
inline void ApplyRefOperation(storage::FileSystem& fs, const std::string& repository,
                              const wal::Operation& operation) {
  const auto root = storage::StorePath::Parse(repository).value();
  if (const auto* edit = std::get_if<wal::EditPackedRefs>(&operation)) {
    std::string bytes;
    if (auto read = storage::ReadFile(fs, root / "packed-refs"); read.ok()) bytes = *read;
    const auto packed = refs::PackedRefs::Parse(bytes, ObjectFormat::kSha1);
    ASSERT_OK(packed);
    const auto edited = refs::EditPackedRefs(*packed, edit->set, edit->remove);
    ASSERT_OK(edited);
    if (edited->changed) ReplacePackedRefs(fs, repository, edited->content);
  } else if (const auto* put = std::get_if<wal::PutFile>(&operation)) {
    const auto path = root.Child(put->path).value();
    if (auto info = fs.Stat(path); info.ok() && info->kind == storage::FileKind::kDirectory) {
      ASSERT_OK(storage::RemoveTree(fs, path));
    }
    PutBytes(fs, path.text(), put->content.inline_bytes);
  } else if (const auto* remove = std::get_if<wal::RemoveFile>(&operation)) {
    const auto path = root.Child(remove->path).value();
    if (const auto info = fs.Stat(path); info.ok()) {
      if (info->kind != storage::FileKind::kDirectory) {
        ASSERT_OK(storage::RemoveEmptyParents(fs, path, root / "refs"));
      }
    }
  } else {
    FAIL() << "an operation that no ref change derives";
  }
}

inline void ApplyRefOperations(storage::FileSystem& fs, const std::string& repository,
                               const std::vector<wal::Operation>& operations) {
  for (const wal::Operation& operation : operations) ApplyRefOperation(fs, repository, operation);
}

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_REFS_REF_TEST_UTIL_H_
