import Foundation
import KeyhaulKit
import Testing

@Suite("Programs that import only KeyhaulKit")
struct OneImportTests {
  let home: TemporaryDeviceSet
  let old: VirtualDevice
  let new: VirtualDevice
  let path: String

  /// Creates two phones. The old phone has an item that can move and an item that cannot.
  init() throws {
    home = try TemporaryDeviceSet()
    path = home.devices.path + "/old.tar"
    old = try home.devices.create(DeviceName("old-phone"), passcode: Secret(utf8: "1234")) {
      (phone) throws(KeyhaulError) in
      try phone.add(Self.password("mail", .afterFirstUnlock))
      try phone.add(Self.password("push token", .whenUnlockedThisDeviceOnly))
    }
    new = try home.devices.create(DeviceName("new-phone"), passcode: Secret(utf8: "0000"))
  }

  private static func password(_ account: String, _ protection: ProtectionClass) -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.account] = .string(account)
    item.protection = protection
    item.secret = SensitiveBytes(copying: Array("hunter2".utf8))
    return item
  }

  private func accounts(on device: VirtualDevice) throws -> [String] {
    let session = try device.openSession(.reading, verb: "look")
    defer { session.invalidate() }
    return try session.find(ItemQuery()).items.compactMap { $0.item[.account]?.stringValue }.sorted()
  }

  @Test("A program can back up a phone, plan, and restore to another phone")
  func newPhone() throws {
    _ = try Backup.create(from: old, password: Secret(utf8: "horse"), at: path, iterations: 1)
    let backup = try Backup(path: path, password: Secret(utf8: "horse"))
    #expect(backup.archive.isEncrypted && backup.items.count == 2)
    #expect(backup.items.compactMap { backup.reason(of: $0) } == [.deviceBound])

    let plan = try backup.plan(onto: new)
    #expect(plan["mail"] == .migrates)
    #expect(plan.arriving.count == 1 && plan.unreadable.isEmpty)
    #expect(plan.stayingBehind.map(\.outcome.reason) == [.deviceBound])
    #expect(try accounts(on: new) == [])
    try plan.restore()
    #expect(try accounts(on: new) == ["mail"])
  }

  @Test("With the source device, all items can be decrypted and restored")
  func samePhone() throws {
    let backup = try Backup.create(from: old, at: path)
    #expect(backup.items.count == 2 && backup.items.allSatisfy { backup.reason(of: $0) == nil })
    #expect(try Backup(path: path).items.allSatisfy { $0.item == nil })
    try old.withSession(.writing, verb: "erase") { (session) throws(KeyhaulError) in try session.erase() }
    try backup.plan(onto: old).restore()
    #expect(try accounts(on: old) == ["mail", "push token"])
  }

  @Test("A restore to a phone that has changed since the plan fails and restores nothing")
  func changedSince() throws {
    let plan = try Backup.create(from: old, at: path).plan(onto: new)
    try new.withSession(.writing, verb: "add") { (session) throws(KeyhaulError) in
      _ = try session.add(Self.password("added since", .afterFirstUnlock))
    }
    let error = #expect(throws: KeyhaulError.self) { try plan.restore() }
    #expect(error?.category == .stalePlan && error?.stage == .beforeCommit)
    #expect(try accounts(on: new) == ["added since"])
  }

  @Test("Errors have a category for a switch statement")
  func errors() throws {
    _ = try Backup.create(from: old, password: Secret(utf8: "horse"), at: path, iterations: 1)
    func category(_ body: () throws(KeyhaulError) -> Void) -> ErrorCategory? {
      do throws(KeyhaulError) { try body() } catch { return error.category }
      return nil
    }
    #expect(category { () throws(KeyhaulError) in _ = try Backup(path: path) } == .wrongPassword)
    #expect(
      category { () throws(KeyhaulError) in _ = try Backup(path: path, password: Secret(utf8: "house")) }
        == .wrongPassword)
    #expect(category { () throws(KeyhaulError) in _ = try Backup(path: path + "x") } == .notFound)
    #expect(
      category { () throws(KeyhaulError) in
        _ = try Backup(path: path, password: Secret(utf8: "horse"), acceptingAtMost: 1)
      }
        == .refused)
    #expect(category { () throws(KeyhaulError) in _ = try Backup.create(from: old, at: path) } == .usage)
    try old.withSession(.writing, verb: "lock") { (session) throws(KeyhaulError) in try session.lock() }
    #expect(
      category { () throws(KeyhaulError) in _ = try Backup.create(from: old, at: path + ".2.tar") } == .locked)
    #expect(!FileManager.default.fileExists(atPath: path + ".2.tar"))
  }

  @Test("An outlook needs no target, and with the source device it covers every item")
  func outlook() throws {
    let backup = try Backup.create(from: old, password: Secret(utf8: "horse"), at: path, iterations: 1)
    let withSource = try backup.outlook()
    #expect(withSource.counts(onSameDevice: false).arrives == 1 && withSource.counts(onSameDevice: true).arrives == 2)
    #expect(
      withSource.planForNewDevice.decisions.map(\.description).sorted()
        == ["mail: migrates", "push token: stays-behind (device-bound)"])
    let withoutSource = try Backup(path: path, password: Secret(utf8: "horse")).outlook()
    #expect(
      withoutSource.counts(onSameDevice: true).arrives == 1 && withoutSource.counts(onSameDevice: true).expected == 1)
  }

  @Test("A backup stays intact after it is converted, sealed and rekeyed")
  func rewrittenBackups() throws {
    let backup = try Backup.create(from: old, password: Secret(utf8: "horse"), at: path, iterations: 1)
    #expect(try backup.verify().faults.isEmpty)
    let copy = path + ".folder/"
    try backup.convert(to: copy)
    let error = #expect(throws: KeyhaulError.self) { try Backup(path: copy, password: Secret(utf8: "horse")).seal() }
    #expect(error?.category == .usage)
    try FileManager.default.removeItem(atPath: copy + "Keyhaul.seal")
    #expect(try Backup(path: copy, password: Secret(utf8: "horse")).seal() > 0)

    let changed = try Backup(path: copy, password: Secret(utf8: "horse"))
      .rekey(from: Secret(utf8: "horse"), to: Secret(utf8: "zebra"))
    #expect(changed.items.count == 2 && changed.archive.seal != nil)
    #expect(try changed.verify().faults.isEmpty)
    #expect(throws: KeyhaulError.self) { try Backup(path: copy, password: Secret(utf8: "horse")) }
    #expect(try Backup(path: path, password: Secret(utf8: "horse")).items.count == 2)
  }

  @Test("A link to a backup is not replaced by a sealed copy")
  func link() throws {
    _ = try Backup.create(from: old, at: path)
    let link = path + ".link"
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    #expect(throws: KeyhaulError.self) { try Backup(path: link).seal() }
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == path)
  }

  @Test("An open backup cannot be changed, and a backup that is being changed cannot be opened")
  func locks() throws {
    func isLocked() -> Bool {
      do { return try BackupLock.acquire(path, for: .writing) == nil } catch { return true }
    }
    var backup: Backup? = try Backup.create(from: old, at: path)
    #expect(isLocked() && backup != nil)
    #expect(try Backup(path: path).items.count == 2)
    backup = nil
    #expect(!isLocked())

    let lock = try #require(try BackupLock.acquire(path, for: .writing))
    let error = #expect(throws: KeyhaulError.self) { try Backup(path: path) }
    #expect(error?.category == .busy)
    _ = consume lock
    #expect(try Backup(path: path).items.count == 2)
  }

  @Test("A file with secrets is new, complete, and readable by its owner only")
  func secretFile() throws {
    let file = home.devices.path + "/secret.csv"
    try SensitiveBytes(copying: Array("hunter2".utf8)).write(toNewFile: file)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "hunter2")
    let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    let error = #expect(throws: KeyhaulError.self) {
      try SensitiveBytes(copying: [1]).write(toNewFile: file)
    }
    #expect(error?.category == .usage)
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "hunter2")
  }
}
