import Basics
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

private let smallDigest = [UInt8](repeating: 1, count: 20)
private let largeDigest = [UInt8](repeating: 2, count: 20)

@Suite("Import conflicts")
struct ImportDecisionTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let incoming: (date: Double?, digest: [UInt8])
    let existing: ExistingRow.State?
    let outcome: ImportResolution.Effect
    /// The modification date of the resolution. An item that replaces another with the same date gets a date that is a
    /// millisecond later.
    let dateAfter: Double?
    var testDescription: String { name }
  }

  private static func storedItem(_ date: Double?, _ digest: [UInt8]) -> ExistingRow.State {
    .item(modificationDate: date.map { .seconds($0) }, digest: digest)
  }

  static let cases: [Case] = [
    Case(name: "no existing row", incoming: (5, smallDigest), existing: nil, outcome: .insertsNew, dateAfter: 5),
    Case(
      name: "no existing row, no date", incoming: (nil, smallDigest), existing: nil, outcome: .insertsNew,
      dateAfter: nil),
    Case(
      name: "corrupt", incoming: (5, smallDigest), existing: .corrupt, outcome: .replaces(.existingCorrupt),
      dateAfter: 5),
    Case(
      name: "tombstone", incoming: (5, smallDigest),
      existing: .tombstone(uuid: "U", persistentReference: [1]), outcome: .replaces(.existingTombstone), dateAfter: 5),
    Case(
      name: "older", incoming: (5, largeDigest), existing: storedItem(4, smallDigest),
      outcome: .replaces(.existingOlder), dateAfter: 5
    ),
    Case(
      name: "newer", incoming: (4, smallDigest), existing: storedItem(5, largeDigest),
      outcome: .keepsExisting(.existingNewer),
      dateAfter: 5),
    Case(
      name: "same date, the backup's digest is smaller", incoming: (5, smallDigest),
      existing: storedItem(5, largeDigest),
      outcome: .replaces(.sameDateSmallerDigest), dateAfter: 5.001),
    Case(
      name: "same date, the backup's digest is larger", incoming: (5, largeDigest),
      existing: storedItem(5, smallDigest),
      outcome: .keepsExisting(.sameDateSmallerDigest), dateAfter: 5),
    Case(
      name: "identical", incoming: (5, smallDigest), existing: storedItem(5, smallDigest), outcome: .identical,
      dateAfter: 5),
    Case(
      name: "the backup's item has no date", incoming: (nil, smallDigest), existing: storedItem(5, largeDigest),
      outcome: .keepsExisting(.incomingUndated), dateAfter: 5),
    Case(
      name: "the row has no date", incoming: (5, largeDigest), existing: storedItem(nil, smallDigest),
      outcome: .replaces(.existingUndated), dateAfter: 5),
    Case(
      name: "neither has a date", incoming: (nil, smallDigest), existing: storedItem(nil, largeDigest),
      outcome: .replaces(.sameDateSmallerDigest), dateAfter: nil),
    Case(
      name: "locked", incoming: (5, smallDigest), existing: .unreadable(.locked(.whenUnlocked)),
      outcome: .blocked(.locked(.whenUnlocked)), dateAfter: nil),
  ]

  @Test("A conflict is decided by the dates, then by the digests", arguments: cases)
  func decision(_ example: Case) {
    let resolution = ImportConflict.resolve(
      modificationDate: example.incoming.date.map { .seconds($0) }, digest: { example.incoming.digest },
      existing: example.existing.map(ExistingRow.init(state:)))
    #expect(resolution.outcome == example.outcome)
    #expect(resolution.modificationDate?.secondsSinceReferenceDate == example.dateAfter)
  }

  @Test("A tombstone passes on its UUID and its persistent reference")
  func inheritance() {
    let resolution = ImportConflict.resolve(
      modificationDate: .seconds(1), digest: { smallDigest },
      existing: ExistingRow(state: .tombstone(uuid: "U", persistentReference: [9])))
    #expect(resolution.inheritedUUID == "U")
    #expect(resolution.inheritedPersistentReference == [9])
  }
}
