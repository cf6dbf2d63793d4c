import Backups
import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
import Synchronization
import SystemPackage
import TestSupport
import VirtualDevice

@testable import KeyhaulKit

/// A file system that does not wait for the disk.
let unsynced = FileSystem { $0 == .sync ? .omitted : nil }

/// A simulated crash after a number of file-system calls. Later calls have no effect.
final class SimulatedCrash: Sendable {
  private let remaining: Mutex<Int>

  init(after count: Int?) { remaining = Mutex(count ?? .max) }

  var hasHappened: Bool { remaining.withLock { $0 < 0 } }

  var system: FileSystem {
    FileSystem { [self] call in
      let changes: Set<FileSystem.Call> = [
        .create, .write, .sync, .rename, .exchange, .makeDirectory, .remove, .database,
      ]
      guard changes.contains(call) else { return nil }
      return remaining.withLock { remaining in
        if remaining > 0 { remaining -= 1 } else { remaining = -1 }
        return remaining < 0 ? .failure(.ioError) : call == .sync ? .omitted : nil
      }
    }
  }
}

/// Carries out a scenario, and compares the state after each step with the expected one.
final class SoakRunner {
  struct Difference: Error, CustomStringConvertible { let description: String }

  private let scenario: SoakScenario
  private let setup: TestSetup
  private let path: String
  /// The number of the backup's current password.
  private var passwordNumber = 0
  /// The items that the source device decrypts in the backup; `nil` if there is no backup yet.
  private var expectedItems: [KeychainItem]?
  private(set) var restoreCount = 0
  private(set) var crashCount = 0

  init(_ scenario: SoakScenario) throws {
    self.scenario = scenario
    setup = try TestSetup(seed: "walk \(scenario.seed)")
    path = setup.directory.path(scenario.seed % 2 == 0 ? "b.tar" : "b")
    _ = try setup.phone("source", passcode: "1111")
    _ = try setup.phone("target", passcode: "2222", syncing: scenario.seed % 5 == 0)
  }

  /// Performs the steps in order, and returns the first difference; `nil` if there is none.
  func run() -> String? {
    for step in scenario.steps {
      do {
        try perform(step)
      } catch {
        return "\(step): \(error)"
      }
    }
    return nil
  }

  private func perform(_ step: SoakScenario.Step) throws {
    switch step.action {
    case .insert: try insertUnchanged(step)
    case .change: try change(step)
    case .backUp: try backUp(step)
    case .edit: try edit(step)
    case .rekey: try rekey(step)
    case .restore: try restore(step, onto: "target")
    case .restoreToSource: try restore(step, onto: "source")
    }
  }

  private func require(_ condition: Bool, _ text: @autoclosure () -> String) throws {
    if !condition { throw Difference(description: text()) }
  }

  // MARK: Phones

  /// Opens a session for changes, which may crash.
  private func withSession<Value>(
    _ name: String, until crash: SimulatedCrash? = nil, _ body: (DeviceSession) throws -> Value
  ) throws -> Value {
    var environment = setup.environment
    environment.files = DeviceFiles(crash?.system ?? unsynced)
    let session = try DeviceSet(path: setup.home.path, environment: environment).device(DeviceName(name))
      .openTestSession()
    defer { session.invalidate() }
    return try body(session)
  }

  private func keychain(_ name: String) throws -> KeychainSnapshot {
    try withSession(name) { try KeychainSnapshot($0) }
  }

  private func insertUnchanged(_ step: SoakScenario.Step) throws {
    for (name, maximumCount) in [("source", 4), ("target", 3)] {
      var items: [KeychainItem] = []
      for lane in scenario.lanes {
        var random = scenario.random(lane, step)
        if name == "target" { random = SeededRandom(seed: random.next()) }
        items += (0..<Int.random(in: 0...maximumCount, using: &random)).map { _ in
          .random(using: &random, suffix: SoakScenario.accountSuffix(lane))
        }
      }
      try withSession(name) { session in
        try session.insertUnchanged(items.filter { $0[.accessControl] == nil && (try? IncomingItem($0)) != nil })
      }
    }
  }

  /// Changes or deletes one row in some lanes, and checks that no other row changes.
  private func change(_ step: SoakScenario.Step) throws {
    let name = step.number % 2 == 1 ? "source" : "target"
    for lane in scenario.lanes.prefix(4) {
      var random = scenario.random(lane, step)
      let before = try keychain(name)
      let rows = before.rows.filter {
        !$0.isTombstone && $0.item?[.account]?.stringValue?.hasSuffix(SoakScenario.accountSuffix(lane)) == true
      }
      guard let row = rows.randomElement(using: &random), let key = row.key else { continue }
      let secret = random.bytes(4)
      let isDeletion = Bool.random(using: &random)
      let crash = SimulatedCrash(after: step.crash)
      let isHidden = try !change(row, on: name, to: isDeletion ? nil : secret, until: crash)
      if crash.hasHappened { crashCount += 1 }
      let after = try keychain(name).liveItems
      let others = before.liveItems.filter { $0.key != key }
      try require(
        others.allSatisfy { after[$0.key]?.contents == $0.value.contents } && after.count - others.count <= 1,
        "another row changed with \(key)")
      let isNew = isDeletion ? after[key] == nil : after[key]?.secretBytes == secret
      let isOld = after[key]?.contents == before.liveItems[key]?.contents
      try require(isHidden ? isOld : isNew || crash.hasHappened && isOld, "\(key) is neither old nor new")
    }
  }

  /// Sets the secret of a row's item, or deletes the item, as an app does.
  ///
  /// - Parameter secret: The new secret; `nil` to delete the item.
  /// - Returns: `false` if an app's search does not find the item, which belongs to another user or to the system.
  private func change(
    _ row: KeychainSnapshot.Row, on name: String, to secret: [UInt8]?, until crash: SimulatedCrash
  ) throws -> Bool {
    let query = ItemQuery(row: RowReference(kind: row.kind, rowID: row.rowID))
    do {
      _ = try withSession(name, until: crash) { session in
        guard let secret else { return try session.delete(query) }
        let changes = ItemChanges(secrets: [.valueData: SensitiveBytes(copying: secret)])
        return try session.update(query, with: changes)
      }
    } catch let error as KeyhaulError where "\(error)".hasPrefix("no item matches") {
      return false
    } catch  where crash.hasHappened {}
    return true
  }

  // MARK: The backup

  private var password: String { "password \(passwordNumber)" }

  private func sourceDeviceKey() throws -> DeviceKey {
    let session = try setup.home.device(DeviceName("source")).openTestSession(.reading)
    defer { session.invalidate() }
    return try session.deviceKey()
  }

  /// Returns the backup's items, decrypted with the source device's key.
  private func backupItems() throws -> [KeychainItem?] {
    let archive = try BackupArchive.open(.path(path))
    let unlocked = try archive.open(
      with: archive.unlock(password: Secret(utf8: password)), deviceKey: sourceDeviceKey())
    return unlocked.items.map(\.item)
  }

  /// Returns whether the backup contains exactly these items, and the source device decrypts all of them. For `nil`,
  /// returns whether there is no backup.
  private func backupContains(_ items: [KeychainItem]?) throws -> Bool {
    guard let items else { return (try? BackupArchive.open(.path(path))) == nil }
    guard let actual = try? backupItems() else { return false }
    return actual.compactMap { $0?.contents } == items.map(\.contents) && actual.count == items.count
  }

  /// Changes the backup. After a crash, checks that the old backup is intact, and repeats the change.
  private func rewrite<Value>(_ step: SoakScenario.Step, _ body: (FileSystem) throws -> Value) throws -> Value {
    let crash = SimulatedCrash(after: step.crash)
    do {
      return try body(crash.system)
    } catch  where crash.hasHappened {
      crashCount += 1
      try require(try backupContains(expectedItems), "after the crash, the old backup is not intact: \(error)")
      return try body(unsynced)
    }
  }

  private func backUp(_ step: SoakScenario.Step) throws {
    let destination: BackupDestination = path.hasSuffix(".tar") ? .file(path, .tar) : .directory(path)
    let itemsOnPhone = try keychain("source").liveItems
    let count: Int = try rewrite(step) { system in
      try withSession("source") { session in
        let prepared = try BackupExporter.prepare(session, password: Secret(utf8: "password 0"), rounds: 1)
        let exportedCount = prepared.report.exported.count
        _ = try prepared.write(
          with: BackupWriter(system: system), to: destination, replace: true,
          random: SeededRandomSource(seed: "\(step)"))
        return exportedCount
      }
    }
    passwordNumber = 0
    let items = try backupItems().compactMap { $0 }
    try require(items.count == count, "the backup has \(items.count) items, but the report counts \(count)")
    try require(
      items.allSatisfy { itemsOnPhone[ItemKey($0)]?.portableContents == $0.portableContents },
      "an item differs from the one on the phone")
    expectedItems = items
  }

  /// Adds, changes and removes items of some lanes, as the `item` commands do in a backup.
  private func edit(_ step: SoakScenario.Step) throws {
    guard let oldItems = expectedItems else { return }
    let newItems: [KeychainItem] = try rewrite(step) { system in
      let archive = try BackupArchive.open(.path(path))
      let key = try archive.unlock(password: Secret(utf8: password))
      let unlocked = try archive.open(with: key, deviceKey: sourceDeviceKey(), for: .rewriting)
      let edited = try EditedKeychain(
        unlocked, keys: try key.classKeys(deviceKey: sourceDeviceKey()), now: TestSetup.now,
        random: SeededRandomSource(seed: "\(step)"))
      let items = scenario.lanes.reduce(into: oldItems as [KeychainItem?]) { items, lane in
        edit(edited, in: lane, step, items: &items)
      }
      _ = try BackupRewriter(system: system).replaceKeychain(
        of: archive, at: path, with: edited.serialized(), keys: try key.classKeys(deviceKey: sourceDeviceKey()),
        random: SeededRandomSource(seed: "\(step) file"))
      return ItemKind.allCases.flatMap { kind in items.compactMap { $0 }.filter { $0.kind == kind } }
    }
    try require(try backupContains(newItems), "the backup does not contain the expected items")
    expectedItems = newItems
  }

  /// Adds, changes or removes at most one item of a lane.
  ///
  /// - Parameter items: The expected items, by their index in the keychain; `nil` if the item is removed.
  private func edit(
    _ edited: EditedKeychain, in lane: UInt64, _ step: SoakScenario.Step, items: inout [KeychainItem?]
  ) {
    var random = scenario.random(lane, step)
    let indices = items.indices.filter {
      items[$0]?[.account]?.stringValue?.hasSuffix(SoakScenario.accountSuffix(lane)) == true
    }
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      if let added = try? edited.add(.random(using: &random, suffix: "+" + SoakScenario.accountSuffix(lane))) {
        items.append(added.item)
      }
    case 1:
      guard let index = indices.randomElement(using: &random) else { return }
      let changes = ItemChanges(secrets: [.valueData: SensitiveBytes(copying: random.bytes(3))])
      if let changed = try? edited.update([index], with: changes) { items[index] = changed.first ?? nil }
    case 2:
      guard let index = indices.randomElement(using: &random) else { return }
      edited.remove([index])
      items[index] = nil
    default: break
    }
  }

  private func rekey(_ step: SoakScenario.Step) throws {
    guard let expectedItems else { return }
    let newPassword = "password \(passwordNumber + 1)"
    try rewrite(step) { system in
      let archive = try BackupArchive.open(.path(path))
      let keybag = try BackupKeybag.rewrap(
        archive.keybag, from: Secret(utf8: password), to: Secret(utf8: newPassword),
        random: SeededRandomSource(seed: "\(step)"))
      try BackupRewriter(system: system).replaceKeybag(
        of: archive, at: path, with: keybag,
        keys: archive.unlock(password: Secret(utf8: password)).classKeys(deviceKey: nil))
    }
    passwordNumber += 1
    try require(
      try backupContains(expectedItems), "with the new password, the backup does not contain the same items")
  }

  // MARK: The restore

  private func restore(_ step: SoakScenario.Step, onto name: String) throws {
    guard let expectedItems else { return }
    let before = try keychain(name)
    let crash = SimulatedCrash(after: step.crash)
    func run(_ crash: SimulatedCrash?) throws -> MigrationPlan {
      try withSession(name, until: crash) { session in
        let archive = try BackupArchive.open(.path(path))
        let unlocked = try archive.open(
          with: archive.unlock(password: Secret(utf8: password)), deviceKey: session.deviceKey())
        return try session.restore(unlocked, policy: step.policy)
      }
    }
    let plan: MigrationPlan
    do {
      plan = try run(crash)
    } catch  where crash.hasHappened {
      crashCount += 1
      try require(
        try keychain(name).columnsOfRows == before.columnsOfRows, "the crash left a partial restore: \(error)")
      plan = try run(nil)
    }
    restoreCount += 1
    try require(plan.decisions.count == expectedItems.count, "the plan has \(plan.decisions.count) items")
    let differences = PlanVerifier(plan, of: expectedItems, before: before, after: try keychain(name)).differences
    try require(differences.isEmpty, "\(differences)")
  }
}
