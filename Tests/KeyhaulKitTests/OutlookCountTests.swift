import Backups
import KeychainFormats
import KeychainRules
import Testing

@testable import KeyhaulKit

@Suite("Counts of an outlook")
struct OutlookCountTests {
  private static let reasons: [Reason?] = [
    .passcodeOnly, .hardwareKey, .needsAuthentication, nil, nil, .tagMismatch, .malformed, .noClassKey, .malformed,
  ]

  /// An outlook whose backup contains nothing, and whose source device has one item for each reason.
  private var outlook: RestoreOutlook {
    let absent = Self.reasons.enumerated().map { index, reason in
      SourceDeviceItems.Item(
        identity: ItemDescriptor(.password("secret-name-\(index)")), protection: .whenUnlocked, reason: reason)
    }
    let plan = MigrationPlan(
      decisions: [], removed: [], policy: .replace, isSameDevice: false, imports: [], removedRowCount: 0)
    let scenario = RestoreScenario(hasPassword: true, onSameDevice: false)
    return RestoreOutlook(
      MigrationComparison([], current: scenario), planForNewDevice: plan, sourceIsBackup: true, triedDeviceKey: true,
      sourceDeviceItems: SourceDeviceItems(
        device: "old-phone", revision: "r", isProven: true, absent: absent, includedCount: 0))
  }

  @Test("Each item that is only on the source device is counted once: never in a backup, later, or unreadable")
  func sourceDevice() {
    for onSameDevice in [true, false] {
      let counts = outlook.counts(onSameDevice: onSameDevice)
      #expect(counts.never == 3 && counts.since == 2 && counts.unreadable == 4)
      #expect(counts.lost == 9 && counts.total == 9 && counts.staysBehind == 0 && counts.restoredCount == 0)
    }
    #expect(outlook.items.map(\.reason) == Self.reasons)
  }

  @Test("A redacted outlook has no name of an item or device, and the same counts and reasons")
  func redacted() {
    let redacted = outlook.redacted
    func names(_ outlook: RestoreOutlook) -> [String] { outlook.items.map { $0.identity.names.joined(separator: " ") } }
    #expect(names(outlook).allSatisfy { $0.contains("secret-name") })
    #expect(!names(redacted).contains { $0.contains("secret-name") })
    #expect(redacted.sourceDeviceItems?.device != "old-phone")
    #expect(redacted.items.map(\.reason) == Self.reasons)
    #expect(redacted.counts(onSameDevice: false) == outlook.counts(onSameDevice: false))
  }
}
