import Backups
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing
import VirtualDevice

@Suite("What a backup leaves out, on a device")
struct LeftOutOnADeviceTests {
  @Test("what stays is told with its reason, the rest is in the archive")
  func onADevice() throws {
    let desk = try Desk(seed: "export")
    let phone = try desk.phone("phone", passcode: "1234")
    let session = try phone.held()
    try session.plant([
      .password("ordinary"), .password("passcode", .whenPasscodeSetThisDeviceOnly),
      .password("token", marks: [.tokenID: .string("com.apple.setoken")]),
      .password("shared", marks: [.sharingGroup: .string("g")]),
      .password("system", group: "lockdown-identities"), .password("spared", marks: [.systemBound: .integer(0)]),
      .password("deleted", marks: [.tombstone: .integer(1), .synchronizable: .integer(1)]),
      .password("guarded", marks: [.accessControl: .dictionary(["od": .string("cpo")])]), .password("clip"),
      .password("broken"),
    ])
    try HeldKeychain.execute(
      """
      UPDATE genp SET clip = 1 WHERE rowid = 9;
      UPDATE genp SET data = x'0300000006000000' WHERE rowid = 10;
      """, on: phone)
    let report = try BackupExporter.prepare(session, password: nil).report
    #expect(report.exported.map(\.identity.account) == ["ordinary", "spared"])
    let reasons = report.leftOut.compactMap(\.outcome.reason)
    #expect(
      reasons == [
        .passcodeOnly, .hardwareKey, .sharedGroup, .systemBound, .deleted, .needsAuthentication, .appClip, .malformed,
      ])
    #expect(report.leftOut.last?.detail?.isEmpty == false)
    #expect(report.leftOut.last?.identity.account == nil)
    // The tombstone is no item.
    #expect(report.total == 9)
    let archive = try desk.open(try desk.backUp(phoneAfter(session), password: nil), password: nil, on: nil)
    #expect(archive.items.count == 2)
  }

  private func phoneAfter(_ session: DeviceSession) -> VirtualDevice {
    session.invalidate()
    return session.device
  }

  @Test("a device that syncs sends its tombstones along")
  func syncing() throws {
    let desk = try Desk(seed: "tombstones")
    let session = try desk.phone("phone", syncing: true).held()
    try session.plant(.password("deleted", marks: [.tombstone: .integer(1), .synchronizable: .integer(1)]))
    let report = try BackupExporter.prepare(session, password: nil).report
    #expect(report.exported.map(\.identity.account) == ["deleted"])
  }
}
