import Backups
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing
import VirtualDevice

@Suite("Items that backups exclude")
struct DeviceExclusionTests {
  @Test("Excluded items are reported with their reason, and all other items are in the backup")
  func excluded() throws {
    let setup = try TestSetup(seed: "export")
    let phone = try setup.phone("phone", passcode: "1234")
    let session = try phone.openTestSession()
    try session.insertUnchanged([
      .password("ordinary"), .password("passcode", .whenPasscodeSetThisDeviceOnly),
      .password("token", attributes: [.tokenID: .string("com.apple.setoken")]),
      .password("shared", attributes: [.sharingGroup: .string("g")]),
      .password("system", group: "lockdown-identities"), .password("unmarked", attributes: [.systemBound: .integer(0)]),
      .password("deleted", attributes: [.tombstone: .integer(1), .synchronizable: .integer(1)]),
      .password("guarded", attributes: [.accessControl: .dictionary(["od": .string("cpo")])]), .password("clip"),
      .password("damaged"),
    ])
    // Rows 9 and 10 are the last two items.
    try KeychainSnapshot.execute(
      """
      UPDATE genp SET clip = 1 WHERE rowid = 9;
      UPDATE genp SET data = x'0300000006000000' WHERE rowid = 10;
      """, on: phone)
    let report = try BackupExporter.prepare(session, password: nil).report
    #expect(report.exported.map(\.identity.account) == ["ordinary", "unmarked"])
    let reasons = report.omissions.compactMap(\.outcome.reason)
    #expect(
      reasons == [
        .passcodeOnly, .hardwareKey, .sharedGroup, .systemBound, .deleted, .needsAuthentication, .appClip, .malformed,
      ])
    #expect(report.omissions.last?.detail?.isEmpty == false)
    #expect(report.omissions.last?.identity.account == nil)
    // The tombstone does not count as an item.
    #expect(report.total == 9)
    session.invalidate()
    let unlocked = try setup.open(try setup.backUp(phone, password: nil), password: nil, on: nil)
    #expect(unlocked.items.count == 2)
  }

  @Test("A backup of a device that syncs contains tombstones")
  func syncing() throws {
    let setup = try TestSetup(seed: "tombstones")
    let session = try setup.phone("phone", syncing: true).openTestSession()
    try session.insertUnchanged(
      .password("deleted", attributes: [.tombstone: .integer(1), .synchronizable: .integer(1)]))
    let report = try BackupExporter.prepare(session, password: nil).report
    #expect(report.exported.map(\.identity.account) == ["deleted"])
  }
}
