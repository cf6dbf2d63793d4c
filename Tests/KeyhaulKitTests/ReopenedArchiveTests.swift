import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import KeyhaulKit
import Testing
import VirtualDevice

@Suite("An archive that holds none of its items")
struct ReopenedArchiveTests {
  private let desk: Desk
  private let maker: VirtualDevice
  private let path: String

  init() throws {
    desk = try Desk(seed: "reopened")
    maker = try desk.phone("maker", passcode: "123456")
    let session = try maker.held()
    try session.plant(ProtectionClass.allCases.map { .password($0.rawValue, $0) })
    try session.plant(
      .password("older there", at: 2000), .password("newer there", at: 2000), .password("alike", at: 2000),
      .password("deleted", marks: [.tombstone: .integer(1)]),
      .password("synced", marks: [.synchronizable: .integer(1)]),
      .password("bound", group: "com.apple.security.sos", marks: [.systemBound: .integer(1)]))
    session.end()
    path = try desk.backUp(maker, password: Desk.password)
  }

  private func open(on session: DeviceSession, holdsItems: Bool) throws -> OpenedArchive {
    try open(path, password: Desk.password, on: session, holdsItems: holdsItems)
  }

  private func open(
    _ path: String, password: String?, on session: DeviceSession, holdsItems: Bool
  ) throws -> OpenedArchive {
    let archive = try BackupArchive.open(.path(path))
    let key = try ArchiveKey(of: archive, password: secret(password))
    return try OpenedArchive(
      archive, key: key, deviceKey: try session.deviceKey(), makerKey: nil, for: .restoring, holdsItems: holdsItems)
  }

  private func target(isMaker: Bool) throws -> DeviceSession {
    if isMaker { return try maker.held() }
    let session = try desk.phone("target", syncing: true).held()
    try session.plant(
      .password("older there", at: 1000), .password("newer there", at: 3000), .password("alike", at: 2000),
      .password("its own"))
    return session
  }

  @Test("says the same of each item, and opens it whenever it is asked", arguments: [true, false])
  func items(isMaker: Bool) throws {
    let session = try target(isMaker: isMaker)
    let (held, reopened) = (try open(on: session, holdsItems: true), try open(on: session, holdsItems: false))
    #expect(held.items.count == 10)
    #expect(reopened.contents == held.contents)
    #expect(reopened.hardware == held.hardware)
    // Backwards as well: whoever asks for one out of turn gets that one.
    for index in Array(held.items.indices) + held.items.indices.reversed() {
      let (one, other) = (held.items[index], reopened.items[index])
      #expect(other.index == one.index)
      #expect(other.kind == one.kind)
      #expect(other.protection == one.protection)
      #expect(other.keyClass == one.keyClass)
      #expect(other.classKey == one.classKey)
      #expect(other.failure == one.failure)
      #expect(other.blob == one.blob)
      #expect(other.persistentReference == one.persistentReference)
      #expect(other.fingerprint == one.fingerprint)
      #expect(other.item?.attributes == one.item?.attributes)
      #expect(other.item?.secret?.constantTimeEquals(try #require(one.item?.secret)) == (one.item == nil ? nil : true))
      #expect(reopened.reason(of: other) == held.reason(of: one))
    }
  }

  @Test(
    "is planned for as one that holds them, and restored as planned", arguments: ExistingItemPolicy.allCases,
    [true, false])
  func plans(_ policy: ExistingItemPolicy, isMaker: Bool) throws {
    let session = try target(isMaker: isMaker)
    let (held, reopened) = (try open(on: session, holdsItems: true), try open(on: session, holdsItems: false))
    for indexes in [nil, Set([0, 3, 7]), []] {
      let one = try Restorer.plan(held, onto: session, policy: policy, only: indexes)
      let other = try Restorer.plan(reopened, onto: session, policy: policy, only: indexes)
      #expect(other.decisions == one.decisions)
      #expect(other.removed == one.removed)
      #expect(other.clearedRowCount == one.clearedRowCount)
      #expect(other.changesNothing == one.changesNothing)
      #expect(other.imports.map(\.outcome) == one.imports.map(\.outcome))
      #expect(other.imports.map(\.writes) == one.imports.map(\.writes))
      for (own, planned) in zip(one.imports, other.imports) {
        #expect(try other.incoming(planned).item.attributes == one.incoming(own).item.attributes)
      }
    }
    let plan = try session.restore(reopened, policy: policy)
    let arrived = plan.decisions.filter { $0.outcome.change != nil }.map(\.identity.account)
    #expect(arrived.contains("alike"))
    let accounts = try HeldKeychain(session).rows.compactMap { $0.item.map { ItemIdentity($0).account } }
    #expect(Set(arrived).isSubset(of: accounts))
  }

  @Test("says of two items with one key which wins, as one that holds them", arguments: ExistingItemPolicy.allCases)
  func twice(_ policy: ExistingItemPolicy) throws {
    let path = try desk.backUp(maker, password: nil, named: "twice", as: .directory)
    let file = URL(fileURLWithPath: path + "/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e")
    var keychain = try KeychainBackupFile(parsing: Array(Data(contentsOf: file)))
    let count = keychain.entries.count
    keychain.entries += keychain.entries
    try Data(keychain.serialized()).write(to: file)
    try FileManager.default.removeItem(atPath: path + "/Keyhaul.seal")
    let session = try maker.held()
    let (held, reopened) = (
      try open(path, password: nil, on: session, holdsItems: true),
      try open(path, password: nil, on: session, holdsItems: false)
    )
    #expect(reopened.items.count == 2 * count)
    let one = try Restorer.plan(held, onto: session, policy: policy)
    let other = try Restorer.plan(reopened, onto: session, policy: policy)
    #expect(other.decisions == one.decisions)
    let alike = other.decisions.suffix(count).compactMap(\.detail).filter { $0.hasPrefix("the same as item") }
    #expect(alike.count > 5)
    try Restorer.restore(other, onto: session)
  }
}
