import Basics
import Foundation
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Limits of the work for a backup")
struct WorkLimitTests {
  @Test("The number of rows is limited")
  func rows() throws {
    var quota = FileList.RowQuota(limit: 3)
    for _ in 0..<3 { try quota.add() }
    let error = #expect(throws: KeyhaulError.self) { try quota.add() }
    #expect(error?.code == .overLimit)
    #expect(FileList.RowQuota().limit == BackupLimits.rowCount)
  }

  @Test("The number of domains is limited")
  func domains() throws {
    try FileList.check(domainCount: BackupLimits.domainCount)
    let error = #expect(throws: KeyhaulError.self) {
      try FileList.check(domainCount: BackupLimits.domainCount + 1)
    }
    #expect(error?.code == .overLimit)
  }

  @Test("A manifest with more domains than on any device is refused")
  func manyDomains() throws {
    // SQL cannot compute the identifiers of the files, which are hashes.
    var rows: [String] = []
    for number in 0..<BackupLimits.domainCount + 2 {
      let identifier = try ListedFile.identifier(domain: "D\(number)", relativePath: "")
      rows.append("('\(identifier)','D\(number)','',2,NULL)")
    }
    let sql = ExternalDatabase.schema + "INSERT INTO Files VALUES " + rows.joined(separator: ",")
    let fileList = FileList(
      try ManifestDatabase(try DatabaseBytes(try SpooledData(try ExternalDatabase.bytes(sql)))))
    let error = #expect(throws: KeyhaulError.self) { try fileList.listing() }
    #expect(error?.code == .overLimit && error?.reason == "the manifest has more than 100,000 domains")
  }

  @Test("The indexes of a manifest count as damaged if their check exceeds its limit of CPU time")
  func indexes() throws {
    let rows = (0..<500).map { number in
      "INSERT INTO Files VALUES (printf('%040x', \(number)), 'HomeDomain', 'f\(number)', 1, NULL);"
    }
    let bytes = try ExternalDatabase.bytes(ExternalDatabase.schema + rows.joined())
    let connection = try ManifestConnection(try DatabaseBytes(try SpooledData(bytes)))
    #expect(try connection.firstFault() == nil)
    #expect(try connection.firstFault(within: 0) == "its indexes take too long to check")
    // The limit does not apply to the next check.
    #expect(try connection.firstFault() == nil)
  }

  @Test("Only the fields of a record that are needed are decoded")
  func denseRecords() throws {
    let record = CostlyPlists.fileRecord(unusedReferences: 200_000)
    let rows = (0..<200).map { number in
      "INSERT INTO Files VALUES (printf('%040x', \(number)), 'HomeDomain', 'f', 0, (SELECT value FROM Properties));"
    }
    let sql =
      ExternalDatabase.schema + "INSERT INTO Properties VALUES ('r', x'\(record.hex)');" + rows.joined()
      + "DELETE FROM Properties;"
    let database = try ManifestDatabase(try DatabaseBytes(try SpooledData(try ExternalDatabase.bytes(sql))))
    // The flags of these rows state no type, so their records must be read, which have forty megabytes in total.
    var kinds: [ListedFile.Kind] = []
    let duration = try ProcessorTime.of { try database.forEachFile { kinds.append($0.kind) } }
    #expect(kinds == [ListedFile.Kind](repeating: .other, count: 200))
    #expect(duration < .seconds(10))
  }

  @Test("The decompressed size of a zip is limited while its payloads are read")
  func zipPayloads() throws {
    var zip = ZipFixture()
    for file in try SampleBackup().storedFiles() { zip.add(file.path, file.bytes) }
    for number in 0..<3 {
      zip.add("00/" + String(repeating: "0", count: 39) + "\(number)", [UInt8](repeating: 7, count: 100_000))
    }
    let directory = try TemporaryDirectory()
    try directory.write(zip.finished(), to: "b.zip")
    var limits = BackupLimits()
    limits.expansionFactor = 0
    func totalByteCount(allowance: Int64) throws -> Int64 {
      limits.decompressionAllowance = allowance
      let archive = try BackupArchive.open(.path(directory.path("b.zip")), limits: limits)
      var total: Int64 = 0
      try archive.forEachPayload(of: try archive.storedFiles()) { (payload) throws(KeyhaulError) in
        _ = try payload.forEachChunk { total += Int64($0.count) }
      }
      return total
    }
    let total = try totalByteCount(allowance: .max)
    #expect(total > 300_000)
    #expect(try totalByteCount(allowance: total) == total)
    let error = #expect(throws: KeyhaulError.self) { try totalByteCount(allowance: total - 1) }
    #expect(error?.code == .overLimit)
  }
}
