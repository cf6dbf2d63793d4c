import Basics
import SystemPackage
import Testing

@Suite("Failures of SQLite")
struct SQLiteFailureTests {
  @Test(
    "A check that ran out of memory for a page is reported as a lack of memory",
    arguments: [
      "On tree page 5 cell 1: unable to get the page. error code=7",
      "*** in database main ***\nTree 3 page 9: btreeInitPage() returns error code 7",
    ])
  func noMemory(result: String) {
    #expect(SQLiteFailure(checkResult: result)?.errno == .noMemory)
  }

  @Test(
    "No other result of a check is reported as a lack of memory, even if an index has a misleading name",
    arguments: [
      "ok", "row 1 missing from index genpagrp", "row 1 missing from index error code=7",
      "On tree page 5 cell 1: unable to get the page. error code=11", "Page 3: never used",
    ])
  func fault(result: String) {
    #expect(SQLiteFailure(checkResult: result)?.reason == nil)
  }
}
