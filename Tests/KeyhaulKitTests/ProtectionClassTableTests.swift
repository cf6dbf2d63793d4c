import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import KeyhaulKit
import TestSupport
import Testing
import VirtualDevice

/// The expected outcome of each class on each target with each kind of backup, written by hand.
private enum ExpectedOutcome: Equatable {
  case restored
  case staysBehind(Reason)
  case neverInBackup
}

private typealias ExpectedOutcomes = (
  sameDevice: ExpectedOutcome, sameDeviceWithPassword: ExpectedOutcome, otherDevice: ExpectedOutcome,
  otherDeviceWithPassword: ExpectedOutcome
)

private let table: [ProtectionClass: ExpectedOutcomes] = [
  .whenUnlocked: (.restored, .restored, .staysBehind(.backupNotEncrypted), .restored),
  .afterFirstUnlock: (.restored, .restored, .staysBehind(.backupNotEncrypted), .restored),
  .always: (.restored, .restored, .staysBehind(.backupNotEncrypted), .restored),
  .whenUnlockedThisDeviceOnly: (.restored, .restored, .staysBehind(.deviceBound), .staysBehind(.deviceBound)),
  .afterFirstUnlockThisDeviceOnly: (.restored, .restored, .staysBehind(.deviceBound), .staysBehind(.deviceBound)),
  .alwaysThisDeviceOnly: (.restored, .restored, .staysBehind(.deviceBound), .staysBehind(.deviceBound)),
  .whenPasscodeSetThisDeviceOnly: (.neverInBackup, .neverInBackup, .neverInBackup, .neverInBackup),
]

private func expectedOutcome(
  of protection: ProtectionClass, sameDevice: Bool, hasPassword: Bool
) throws -> ExpectedOutcome {
  let row = try #require(table[protection])
  return switch (sameDevice, hasPassword) {
  case (true, false): row.sameDevice
  case (true, true): row.sameDeviceWithPassword
  case (false, false): row.otherDevice
  case (false, true): row.otherDeviceWithPassword
  }
}

/// Returns five items with unusual secrets and fractional dates for each of the seven classes. Each class has items of
/// all kinds.
private func itemsOfEveryClass() -> [KeychainItem] {
  var random = SeededRandom(seed: 7)
  let secrets: [[UInt8]] = [
    [0, 0x41, 0, 0xFF, 0xFE, 0, 0xC3, 0x28], [], [0x7F], random.bytes(100_000), Array("naïve \u{0} text".utf8),
  ]
  return ProtectionClass.allCases.enumerated().flatMap { classIndex, protection in
    secrets.enumerated().map { number, secret in
      var item = KeychainItem.password("\(protection.rawValue)-\(number)", protection, secret: secret)
      item.kind = ItemKind.allCases[number % ItemKind.allCases.count]
      let second = Double(600_000_000 + classIndex * 1000 + number)
      item[.creationDate] = .date(KeychainDate(secondsSinceReferenceDate: second + 0.123_456))
      item[.modificationDate] = .date(KeychainDate(secondsSinceReferenceDate: second + 0.75))
      item[.label] = .data([0, 0xFF, UInt8(number)])
      item[.persistentReference] = .data(random.bytes(16))
      item[.uuid] = .string("00000000-0000-4000-8000-0000000\(10 + classIndex)0\(10 + number)")
      addKindAttributes(to: &item, classIndex: classIndex, number: number, second: second, random: &random)
      return item
    }
  }
}

/// Gives an item the attributes of its kind, which make it different from the other items.
private func addKindAttributes(
  to item: inout KeychainItem, classIndex: Int, number: Int, second: Double, random: inout SeededRandom
) {
  switch item.kind {
  case .genericPassword: item[.generic] = .data([1, 0, 2])
  case .internetPassword:
    item[.service] = nil
    item[.server] = .string("example.org")
    item[.protocolType] = .string("htps")
    item[.port] = .integer(993)
    item.secrets["binn"] = SensitiveBytes(copying: [0, 0xFF, 9])
  case .certificate:
    item = item.without(.service, .account)
    item[.issuer] = .data([0x30, 0, UInt8(classIndex), UInt8(number)])
    item[.serialNumber] = .data([0, UInt8(classIndex)])
    item[.certificateType] = .integer(3)
  case .key:
    item = item.without(.service, .account)
    item[.applicationLabel] = .data(random.bytes(20))
    item[.keyClass] = .string("1")
    item[.startDate] = .date(KeychainDate(secondsSinceReferenceDate: second + 0.5))
    item[.canSign] = .integer(1)
  }
}

@Suite("Outcomes for every class and kind")
struct ProtectionClassTableTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let toSameDevice: Bool
    let hasPassword: Bool
    let packaging: TestSetup.Packaging

    var testDescription: String {
      "\(toSameDevice ? "same" : "other") device, \(hasPassword ? "password" : "no password"), \(packaging.rawValue)"
    }

    static let all = [TestSetup.Packaging.directory, .zstandardTar, .zip].flatMap { packaging in
      [true, false].flatMap { same in
        [true, false].map { Case(toSameDevice: same, hasPassword: $0, packaging: packaging) }
      }
    }
  }

  @Test("Every class, kind and secret has the outcome of the table, byte for byte", arguments: Case.all)
  func outcomes(_ testCase: Case) throws {
    let setup = try TestSetup(seed: testCase.testDescription)
    let old = try setup.phone("old-phone", passcode: "123456")
    let password = testCase.hasPassword ? TestSetup.password : nil
    let source = try old.openTestSession()
    try source.insertUnchanged(itemsOfEveryClass())
    let originals = try KeychainSnapshot(source).items
    #expect(originals.count == 35)
    source.invalidate()
    let path = try setup.backUp(old, password: password, as: testCase.packaging)

    let target = try (testCase.toSameDevice ? old : setup.phone("new-phone")).openTestSession()
    if testCase.toSameDevice { try target.erase() }
    #expect(try KeychainSnapshot(target).rows.isEmpty)
    let unlocked = try setup.open(path, password: password, on: target)
    let plan = try target.restore(unlocked)
    let restored = try KeychainSnapshot(target)

    #expect(plan.isSameDevice == testCase.toSameDevice)
    #expect(plan.removed.isEmpty)
    var expectedDecisions: [MigrationPlan.Outcome] = []
    var expectedItems: [ItemKey: KeychainItem.Contents] = [:]
    for item in originals {
      let protection = try #require(item.protection)
      switch try expectedOutcome(
        of: protection, sameDevice: testCase.toSameDevice, hasPassword: testCase.hasPassword)
      {
      case .restored:
        expectedDecisions.append(.migrates(.new))
        expectedItems[ItemKey(item)] = item.contents
      case .staysBehind(let reason): expectedDecisions.append(.staysBehind(reason))
      case .neverInBackup: break
      }
    }
    #expect(plan.decisions.map(\.outcome) == expectedDecisions)
    #expect(plan.decisions.map(\.index) == Array(expectedDecisions.indices))
    #expect(restored.rows.allSatisfy { $0.item != nil })
    #expect(restored.items.count == expectedItems.count)
    for item in restored.items {
      #expect(expectedItems[ItemKey(item)] == item.contents, "\(ItemKey(item))")
    }
  }

  @Test("The exporter reports the exported items, and that passcode-only items stay", arguments: [true, false])
  func report(hasPassword: Bool) throws {
    let setup = try TestSetup()
    let session = try setup.phone("old-phone", passcode: "123456").openTestSession()
    try session.insertUnchanged(itemsOfEveryClass())
    let prepared = try BackupExporter.prepare(session, password: secret(hasPassword ? "pw" : nil), rounds: 1)
    // Five items of each class. The passcode class is not exported.
    #expect(prepared.report.exported.count == 30)
    #expect(prepared.report.omissions.count == 5)
    #expect(prepared.report.omissions.allSatisfy { $0.outcome.reason == .passcodeOnly && $0.detail == nil })
    #expect(prepared.report.total == 35)
  }
}
