import Backups
import KeychainFormats
import KeychainRules
import Keychains
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Plans of dumps")
struct DumpPlanTests {
  private func item(
    _ account: String, protection: String?, group: String = "ABCDE12345.org.example.app",
    attributes: AttributeMap<PropertyValue> = [:]
  ) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [
        .account: .string(account), .service: .string("s"), .accessGroup: .string(group),
        .modificationDate: .date(.reference), .creationDate: .date(.reference),
      ])
    item.attributes.merge(attributes) { $1 }
    item[.protection] = protection.map { .string($0) }
    item.secret = SensitiveBytes(copying: [1])
    return item
  }

  @Test("A plan of a dump has the outcomes of a backup, with the dump's indexes")
  func plan() throws {
    let items = [
      item("bound", protection: "aku"), item("moves", protection: "ak"), item("passcode", protection: "akpu"),
      item("system", protection: "ck", group: "lockdown-identities"),
      item("guarded", protection: "ak", attributes: [.accessControl: .string("kSecAccessControlUserPresence")]),
      item("clip", protection: "ak", attributes: [.appClip: .integer(1)]), item("classless", protection: nil),
      item("gone", protection: "ak", attributes: [.tombstone: .integer(1)]), item("also moves", protection: "dk"),
    ]
    let fault = DumpFault(.tagMismatch, "made up")
    let dump = KeychainDump(
      format: .tables,
      items: items.enumerated().map { DumpedItem(entryPosition: $0, kind: .genericPassword, content: .open($1)) } + [
        DumpedItem(entryPosition: 9, kind: .key, content: .undecryptable(fault, protection: .whenUnlocked))
      ])
    let setup = try TestSetup(seed: "dump")
    let target = try setup.phone("target", passcode: "1").openTestSession(.reading)
    defer { target.invalidate() }

    func outcomes(hasPassword: Bool) throws -> [Int: MigrationPlan.Outcome] {
      let plan = try Restorer.plan(dump, named: "d", hasPassword: hasPassword, onto: target, policy: .replace)
      #expect(plan.isSameDevice == nil, "nothing proves the dump's device")
      #expect(plan.decisions.map(\.index) == plan.decisions.map(\.index).sorted())
      return Dictionary(uniqueKeysWithValues: plan.decisions.map { ($0.index, $0.outcome) })
    }
    let withPassword = try outcomes(hasPassword: true)
    #expect(
      withPassword == [
        0: .staysBehind(.deviceBound), 1: .migrates(.new), 2: .staysBehind(.passcodeOnly),
        3: .staysBehind(.systemBound), 4: .staysBehind(.needsAuthentication), 5: .staysBehind(.appClip),
        6: .unreadable(.malformed), 8: .migrates(.new), 9: .unreadable(.tagMismatch),
      ], "a plan does not contain tombstones")
    let withoutPassword = try outcomes(hasPassword: false)
    #expect(withoutPassword[1] == .staysBehind(.backupNotEncrypted))
    #expect(withoutPassword[0] == .staysBehind(.deviceBound))
  }

  @Test("A plan of a dump cannot be carried out, even after it is saved and read")
  func file() throws {
    let source = PlanDocument.Source(
      kind: .dump, name: "d", device: nil, backupDate: nil, deviceName: nil, encrypted: true, digest: "sha256:00")
    let target = PlanDocument.Target(
      name: "t", sameDevice: nil, claimsSameDevice: false, state: "unlocked", isPasscodeSet: true, itemCount: 0,
      revision: "r1")
    let plan = MigrationPlanner.plan([], onto: [], policy: .replace)
    let document = PlanDocument(
      planTime: "2026-11-20T18:04:00Z", source: source, target: target, plan: plan, limitation: nil,
      dump: .init(format: "keychain-tables", sentence: "not encrypted", unknownProperties: ["who"]))
    let read = try PlanFile(parsing: PlanFile.bytes(of: document))

    #expect(read.document == document)
    #expect(read.obstacle == "it was made from the dump d, which cannot be restored")
  }
}
