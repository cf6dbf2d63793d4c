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
  private var password = 0
  /// The items that the source device decrypts in the backup; `nil` if there is no backup yet.
  private var archived: [KeychainItem]?
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
    _ name: String, _ crash: SimulatedCrash? = nil, _ body: (DeviceSession) throws -> Value
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
          .random(&random, SoakScenario.accountSuffix(lane))
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
      let query = ItemQuery(row: RowReference(kind: row.kind, rowID: row.rowID))
      let secret = random.bytes(4)
      let isDeletion = Bool.random(using: &random)
      let crash = SimulatedCrash(after: step.crash)
      let changes = ItemChanges(secrets: [.valueData: SensitiveBytes(copying: secret)])
      var isHidden = false
      do {
        _ = try withSession(name, crash) { isDeletion ? try $0.delete(query) : try $0.update(query, with: changes) }
      } catch let error as KeyhaulError where "\(error)".hasPrefix("no item matches") {
        // An app's search does not find items of another user or of the system.
        isHidden = true
      } catch  where crash.hasHappened {}
      if crash.hasHappened { crashCount += 1 }
      let after = try keychain(name).live
      let others = before.live.filter { $0.key != key }
      try require(
        others.allSatisfy { after[$0.key]?.contents == $0.value.contents } && after.count - others.count <= 1,
        "another row changed with \(key)")
      let isNew = isDeletion ? after[key] == nil : after[key]?.secretBytes == secret
      let isOld = after[key]?.contents == before.live[key]?.contents
      try require(isHidden ? isOld : isNew || crash.hasHappened && isOld, "\(key) is neither old nor new")
    }
  }

  // MARK: The backup

  private var secretText: String { "password \(password)" }

  private func hardware() throws -> DeviceKey {
    let session = try setup.home.device(DeviceName("source")).openTestSession(.reading)
    defer { session.invalidate() }
    return try session.deviceKey()
  }

  /// Returns the backup's items, decrypted with the source device's key.
  private func backupItems() throws -> [KeychainItem?] {
    let archive = try BackupArchive.open(.path(path))
    return try archive.open(
      with: archive.unlock(password: Secret(utf8: secretText)), deviceKey: hardware()
    ).items
      .map(\.item)
  }

  /// Returns whether the backup contains exactly these items, and the source device decrypts all of them.
  private func backupContains(_ items: [KeychainItem]?) throws -> Bool {
    guard let items else { return (try? BackupArchive.open(.path(path))) == nil }
    guard let actual = try? backupItems() else { return false }
    return actual.compactMap { $0?.contents } == items.map(\.contents) && actual.count == items.count
  }

  /// Changes the backup. After a crash, checks that the old backup is intact, and repeats the change.
  private func rewrite(
    _ step: SoakScenario.Step, new: inout [KeychainItem], _ body: (FileSystem) throws -> [KeychainItem]
  )
    throws
  {
    let crash = SimulatedCrash(after: step.crash)
    do {
      new = try body(crash.system)
    } catch  where crash.hasHappened {
      crashCount += 1
      let old = archived
      let isOld = try backupContains(old)
      if !isOld { throw Difference(description: "after the crash, the old backup is not intact: \(error)") }
      new = try body(unsynced)
    }
    if step.action == .rekey { return }
    try require(try backupContains(new), "the backup does not contain the expected items")
  }

  private func backUp(_ step: SoakScenario.Step) throws {
    let destination: BackupDestination = path.hasSuffix(".tar") ? .file(path, .tar) : .directory(path)
    let live = try keychain("source").live
    let crash = SimulatedCrash(after: step.crash)
    func write(_ system: FileSystem) throws -> Int {
      try withSession("source") { session in
        let prepared = try BackupExporter.prepare(session, password: Secret(utf8: "password 0"), rounds: 1)
        let count = prepared.report.exported.count
        _ = try prepared.write(
          with: BackupWriter(system: system), to: destination, replace: true,
          random: SeededRandomSource(seed: "\(step)"))
        return count
      }
    }
    var count = 0
    do {
      count = try write(crash.system)
    } catch  where crash.hasHappened {
      crashCount += 1
      try require(try backupContains(archived), "after the crash, the old backup is not intact: \(error)")
      count = try write(unsynced)
    }
    password = 0
    let new = try backupItems().compactMap { $0 }
    try require(new.count == count, "the backup has \(new.count) items, but the report counts \(count)")
    try require(
      new.allSatisfy { live[ItemKey($0)]?.portableContents == $0.portableContents },
      "an item differs from the one on the phone")
    archived = new
  }

  /// Adds, changes and removes items of some lanes, as the `item` commands do in a backup.
  private func edit(_ step: SoakScenario.Step) throws {
    guard let old = archived else { return }
    var new: [KeychainItem] = []
    try rewrite(step, new: &new) { system in
      let archive = try BackupArchive.open(.path(path))
      let key = try archive.unlock(password: Secret(utf8: secretText))
      let opened = try archive.open(with: key, deviceKey: hardware(), for: .rewriting)
      let edited = try EditedKeychain(
        opened, keys: try key.classKeys(deviceKey: hardware()), now: TestSetup.now,
        random: SeededRandomSource(seed: "\(step)"))
      var items: [KeychainItem?] = old
      for lane in scenario.lanes {
        var random = scenario.random(lane, step)
        let laneIndexes = old.indices.filter {
          old[$0][.account]?.stringValue?.hasSuffix(SoakScenario.accountSuffix(lane)) == true
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
          if let added = try? edited.add(.random(&random, "+" + SoakScenario.accountSuffix(lane))) {
            items.append(added.item)
          }
        case 1:
          guard let index = laneIndexes.randomElement(using: &random) else { continue }
          let changes = ItemChanges(secrets: [.valueData: SensitiveBytes(copying: random.bytes(3))])
          if let changed = try? edited.update([index], with: changes) { items[index] = changed.first ?? nil }
        case 2:
          guard let index = laneIndexes.randomElement(using: &random) else { continue }
          edited.remove([index])
          items[index] = nil
        default: break
        }
      }
      _ = try BackupRewriter(system: system).replaceKeychain(
        of: archive, at: path, with: edited.serialized(), keys: try key.classKeys(deviceKey: hardware()),
        random: SeededRandomSource(seed: "\(step) file"))
      return ItemKind.allCases.flatMap { kind in items.compactMap { $0 }.filter { $0.kind == kind } }
    }
    archived = new
  }

  private func rekey(_ step: SoakScenario.Step) throws {
    guard let old = archived else { return }
    let next = "password \(password + 1)"
    var new: [KeychainItem] = []
    try rewrite(step, new: &new) { system in
      let archive = try BackupArchive.open(.path(path))
      let keybag = try BackupKeybag.rewrap(
        archive.keybag, from: Secret(utf8: secretText), to: Secret(utf8: next),
        random: SeededRandomSource(seed: "\(step)"))
      try BackupRewriter(system: system).replaceKeybag(
        of: archive, at: path, with: keybag,
        keys: archive.unlock(password: Secret(utf8: secretText)).classKeys(deviceKey: nil))
      return old
    }
    password += 1
    try require(try backupContains(old), "with the new password, the backup does not contain the same items")
  }

  // MARK: The restore

  private func restore(_ step: SoakScenario.Step, onto name: String) throws {
    guard let archived else { return }
    let before = try keychain(name)
    let crash = SimulatedCrash(after: step.crash)
    func run(_ crash: SimulatedCrash?) throws -> MigrationPlan {
      try withSession(name, crash) { session in
        let archive = try BackupArchive.open(.path(path))
        let opened = try archive.open(
          with: archive.unlock(password: Secret(utf8: secretText)), deviceKey: session.deviceKey())
        return try session.restore(opened, policy: step.policy)
      }
    }
    let plan: MigrationPlan
    do {
      plan = try run(crash)
    } catch  where crash.hasHappened {
      crashCount += 1
      try require(try keychain(name).image == before.image, "the crash left a partial restore: \(error)")
      plan = try run(nil)
    }
    restoreCount += 1
    try require(plan.decisions.count == archived.count, "the plan has \(plan.decisions.count) items")
    let differences = PlanVerifier(plan, of: archived, before: before, after: try keychain(name)).differences
    try require(differences.isEmpty, "\(differences)")
  }
}
