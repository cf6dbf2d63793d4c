import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Damaged manifest databases")
struct DamagedManifestTests {
  private static let rowCount = 300
  private static let pageByteCount = 4096
  private static let domain = "HomeDomain"

  private static func path(_ number: Int) -> String { "Library/a-rather-long-name-of-a-file-\(number).txt" }

  /// Creates a manifest with 300 rows, which need several pages for the table and each index.
  private func intactManifest() throws -> [UInt8] {
    let rows = try (1...Self.rowCount).map { number in
      let identifier = try ListedFile.identifier(domain: Self.domain, relativePath: Self.path(number))
      return ExternalDatabase.row(identifier, Self.domain, Self.path(number), 1, [UInt8(number & 0xFF)])
    }
    return try ExternalDatabase.bytes(ExternalDatabase.schema + rows.joined())
  }

  private func open(_ bytes: [UInt8]) throws -> ManifestDatabase {
    try ManifestDatabase(try DatabaseBytes(try SpooledData(bytes)))
  }

  private func paths(of database: ManifestDatabase) throws -> Set<String> {
    var paths: Set<String> = []
    try database.forEachFile { if let path = $0.relativePath { paths.insert(path) } }
    return paths
  }

  /// Returns the offset of the table's first leaf page, which contains a file name.
  private func leafOffset(of bytes: [UInt8]) throws -> Int {
    let starts = stride(from: Self.pageByteCount, to: bytes.count, by: Self.pageByteCount)
    return try #require(
      starts.first { start in
        bytes[start] == 0x0D && bytes[start...].prefix(Self.pageByteCount).firstRange(of: Array("Library/".utf8)) != nil
      })
  }

  @Test("The readable rows of a damaged manifest are found, and the lost ones are counted")
  func damagedLeaf() throws {
    var bytes = try intactManifest()
    let start = try leafOffset(of: bytes)
    bytes.replaceSubrange(start..<start + 16, with: [UInt8](repeating: 0xFF, count: 16))
    let database = try open(bytes)
    guard case .listDamaged(let readable, let lost?, _) = try #require(database.anomalies.compactMap(\.finding).first)
    else {
      Issue.record("\(database.anomalies)")
      return
    }
    #expect(readable > 0 && lost > 0 && readable + lost == Self.rowCount)
    let foundPaths = try paths(of: database)
    #expect(foundPaths.count == readable && foundPaths.isSubset(of: (1...Self.rowCount).map(Self.path)))
    #expect(try database.listing(against: nil).fileCount == readable)
    for number in 1...Self.rowCount {
      let file = try database.file(domain: Self.domain, relativePath: Self.path(number))
      #expect((file != nil) == foundPaths.contains(Self.path(number)))
    }
  }

  @Test("A manifest with a damaged index has all rows")
  func damagedIndex() throws {
    var bytes = try intactManifest()
    // A leaf page of an index begins with 10.
    let start = try #require(
      stride(from: Self.pageByteCount, to: bytes.count, by: Self.pageByteCount).first { bytes[$0] == 0x0A })
    bytes[start] = 0xFF
    let database = try open(bytes)
    let finding = try #require(database.anomalies.compactMap(\.finding).first)
    guard case .listDamaged(Self.rowCount, 0, _) = finding else {
      Issue.record("\(finding)")
      return
    }
    #expect(!finding.isLoss && finding.isDamage)
    #expect(try paths(of: database).count == Self.rowCount)
  }

  @Test(
    "A manifest with any damaged page has no additional rows (20 of 200 pages in a quick run)",
    arguments: Cases.chosen(0..<200, quick: 20))
  func anyPage(seed: Int) throws {
    var bytes = try intactManifest()
    var random = SeededRandom(seed: UInt64(seed))
    let page = Int.random(in: 1..<bytes.count / Self.pageByteCount, using: &random)
    for _ in 0..<8 {
      bytes[page * Self.pageByteCount + Int.random(in: 0..<Self.pageByteCount, using: &random)] =
        UInt8.random(in: 0...255, using: &random)
    }
    guard let database = try? open(bytes) else { return }
    var count = 0
    do throws(KeyhaulError) {
      try database.forEachFile { _ in count += 1 }
    } catch {
      // SQLite's check accepts a record with an inconsistent size.
      #expect(error.category == .damaged)
    }
    #expect(count <= Self.rowCount)
  }

  @Test(
    "A manifest with bytes after its last page has all rows and reports the number of these bytes",
    arguments: [1, 7, 4095, 4096, 8192, 8200])
  func trailingBytes(count: Int) throws {
    let database = try open(try intactManifest() + [UInt8](repeating: 0x5A, count: count))
    #expect(
      database.anomalies == [.finding(.listTrailingBytes(count: count, isWholePages: count.isMultiple(of: 4096)))])
    let isWholePages = count.isMultiple(of: Self.pageByteCount)
    #expect(database.anomalies.compactMap(\.finding).map { $0.blocks(.restoring) } == [!isWholePages])
    #expect(try paths(of: database).count == Self.rowCount)
  }

  @Test("A manifest without its last pages is read row by row and has no additional rows", arguments: 1...12)
  func cut(missing: Int) throws {
    let intact = try intactManifest()
    let database = try open(Array(intact.dropLast(missing * Self.pageByteCount)))
    let present = HumanReadable.grouped(intact.count - missing * Self.pageByteCount)
    guard
      case .listDamaged(let readable, let lost, let reason) = try #require(
        database.anomalies.compactMap(\.finding).first)
    else {
      Issue.record("\(database.anomalies)")
      return
    }
    #expect(reason == "the manifest database has only \(present) of its \(HumanReadable.grouped(intact.count)) bytes")
    #expect(readable > 0 && lost.map { readable + $0 == Self.rowCount } ?? true)
    let foundPaths = try paths(of: database)
    #expect(foundPaths.count == readable && foundPaths.isSubset(of: (1...Self.rowCount).map(Self.path)))
  }

  @Test("A manifest with only its first page is truncated")
  func cutToOnePage() throws {
    let intact = try intactManifest()
    #expect(throws: KeyhaulError.self) { try open(Array(intact.prefix(Self.pageByteCount))) }
    #expect(throws: KeyhaulError.self) { try open(Array(intact.prefix(Self.pageByteCount - 1))) }
    // The header may claim any number of pages.
    var changed = intact
    changed.replaceSubrange(28..<32, with: [0xFF, 0xFF, 0xFF, 0xFF])
    let error = #expect(throws: KeyhaulError.self) { try open(changed) }
    #expect(error?.code == .truncated)
  }
}
