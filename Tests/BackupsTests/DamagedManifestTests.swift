import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import Backups

@Suite("Damaged manifest databases")
struct DamagedManifestTests {
  private static let rowCount = 300
  private static let pageByteCount = 4096
  /// The first byte of a leaf page of a table.
  ///
  /// Source: https://www.sqlite.org/fileformat2.html#b_tree_pages
  private static let tableLeafPage: UInt8 = 0x0D
  /// The first byte of a leaf page of an index.
  private static let indexLeafPage: UInt8 = 0x0A
  private static let domain = "HomeDomain"

  private static func path(ofFile number: Int) -> String { "Library/a-rather-long-name-of-a-file-\(number).txt" }

  /// Creates a manifest with 300 rows, which need several pages for the table and each index.
  private func intactManifest() throws -> [UInt8] {
    let rows = try (1...Self.rowCount).map { number in
      let identifier = try ListedFile.identifier(domain: Self.domain, relativePath: Self.path(ofFile: number))
      return ExternalDatabase.row(
        identifier, domain: Self.domain, path: Self.path(ofFile: number), record: [UInt8(number & 0xFF)])
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

  /// Returns the offsets of all pages except the first, which begins with the file's header.
  private func pageOffsets(in bytes: [UInt8]) -> StrideTo<Int> {
    stride(from: Self.pageByteCount, to: bytes.count, by: Self.pageByteCount)
  }

  /// Returns the offset of the first leaf page of the table `Files`, which contains a file name.
  private func fileLeafOffset(in bytes: [UInt8]) throws -> Int {
    try #require(
      pageOffsets(in: bytes).first { offset in
        let page = bytes[offset...].prefix(Self.pageByteCount)
        return page.first == Self.tableLeafPage && page.firstRange(of: Array("Library/".utf8)) != nil
      })
  }

  @Test("The readable rows of a damaged manifest are found, and the lost ones are counted")
  func damagedLeaf() throws {
    var bytes = try intactManifest()
    let offset = try fileLeafOffset(in: bytes)
    bytes.replaceSubrange(offset..<offset + 16, with: [UInt8](repeating: 0xFF, count: 16))
    let database = try open(bytes)
    guard case .listDamaged(let readable, let lost?, _) = try #require(database.anomalies.compactMap(\.finding).first)
    else {
      Issue.record("\(database.anomalies)")
      return
    }
    #expect(readable > 0 && lost > 0 && readable + lost == Self.rowCount)
    let foundPaths = try paths(of: database)
    #expect(foundPaths.count == readable && foundPaths.isSubset(of: (1...Self.rowCount).map(Self.path(ofFile:))))
    #expect(try database.listing(against: nil).fileCount == readable)
    for number in 1...Self.rowCount {
      let file = try database.file(domain: Self.domain, relativePath: Self.path(ofFile: number))
      #expect((file != nil) == foundPaths.contains(Self.path(ofFile: number)))
    }
  }

  @Test("A manifest with a damaged index has all rows")
  func damagedIndex() throws {
    var bytes = try intactManifest()
    let offset = try #require(pageOffsets(in: bytes).first { bytes[$0] == Self.indexLeafPage })
    bytes[offset] = 0xFF
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
    "A manifest with any damaged page has no additional rows (200 random damages, 20 in a quick run)",
    arguments: Cases.chosen(0..<200, quick: 20))
  func anyPage(seed: Int) throws {
    var bytes = try intactManifest()
    var random = SeededRandom(seed: UInt64(seed))
    let page = Int.random(in: 1..<bytes.count / Self.pageByteCount, using: &random)
    for _ in 0..<8 {
      let offset = page * Self.pageByteCount + Int.random(in: 0..<Self.pageByteCount, using: &random)
      bytes[offset] = UInt8.random(in: 0...255, using: &random)
    }
    guard let database = try? open(bytes) else { return }
    var readCount = 0
    do throws(KeyhaulError) {
      try database.forEachFile { _ in readCount += 1 }
    } catch {
      // Opening may succeed and reading fail, because SQLite's check accepts a record whose size is wrong.
      #expect(error.category == .damaged)
    }
    #expect(readCount <= Self.rowCount)
  }

  @Test(
    "A manifest with bytes after its last page has all rows and reports the number of these bytes",
    arguments: [1, 7, 4095, 4096, 8192, 8200])
  func trailingBytes(count: Int) throws {
    let database = try open(try intactManifest() + [UInt8](repeating: 0x5A, count: count))
    let isWholePages = count.isMultiple(of: Self.pageByteCount)
    #expect(database.anomalies == [.finding(.listTrailingBytes(count: count, isWholePages: isWholePages))])
    #expect(database.anomalies.compactMap(\.finding).map { $0.blocks(.restoring) } == [!isWholePages])
    #expect(try paths(of: database).count == Self.rowCount)
  }

  @Test("A manifest without its last pages is read row by row and has no additional rows", arguments: 1...12)
  func withoutLastPages(missingPageCount: Int) throws {
    let intact = try intactManifest()
    let truncated = Array(intact.dropLast(missingPageCount * Self.pageByteCount))
    let database = try open(truncated)
    guard
      case .listDamaged(let readable, let lost, let reason) = try #require(
        database.anomalies.compactMap(\.finding).first)
    else {
      Issue.record("\(database.anomalies)")
      return
    }
    let (present, total) = (HumanReadable.grouped(truncated.count), HumanReadable.grouped(intact.count))
    #expect(reason == "the manifest database has only \(present) of its \(total) bytes")
    #expect(readable > 0 && lost.map { readable + $0 == Self.rowCount } ?? true)
    let foundPaths = try paths(of: database)
    #expect(foundPaths.count == readable && foundPaths.isSubset(of: (1...Self.rowCount).map(Self.path(ofFile:))))
  }

  @Test("A manifest with only its first page is truncated")
  func onlyFirstPage() throws {
    let intact = try intactManifest()
    #expect(throws: KeyhaulError.self) { try open(Array(intact.prefix(Self.pageByteCount))) }
    #expect(throws: KeyhaulError.self) { try open(Array(intact.prefix(Self.pageByteCount - 1))) }
  }

  @Test("A manifest whose header claims more pages than it has is truncated")
  func falsePageCount() throws {
    var bytes = try intactManifest()
    let pageCountField = 28..<32
    bytes.replaceSubrange(pageCountField, with: [0xFF, 0xFF, 0xFF, 0xFF])
    let error = #expect(throws: KeyhaulError.self) { try open(bytes) }
    #expect(error?.code == .truncated)
  }
}
