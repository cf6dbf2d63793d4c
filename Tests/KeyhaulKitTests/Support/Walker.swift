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

/// A disk that is not waited for.
let unsynced = FileSystem { $0 == .sync ? .omitted : nil }

/// Calls of the file system until the process dies: from then on none has an effect.
final class Death: Sendable {
  private let left: Mutex<Int>

  init(after count: Int?) { left = Mutex(count ?? .max) }

  var happened: Bool { left.withLock { $0 < 0 } }

  var system: FileSystem {
    FileSystem { [self] call in
      let changes: Set<FileSystem.Call> = [
        .create, .write, .sync, .rename, .exchange, .makeDirectory, .remove, .database,
      ]
      guard changes.contains(call) else { return nil }
      return left.withLock { left in
        if left > 0 { left -= 1 } else { left = -1 }
        return left < 0 ? .failure(.ioError) : call == .sync ? .omitted : nil
      }
    }
  }
}

/// Carries a walk out, and says after each step where what is there is not what has to be there.
final class Walker {
  struct Difference: Error, CustomStringConvertible { let description: String }

  private let walk: Walk
  private let desk: Desk
  private let path: String
  private var password = 0
  /// What the phone that made the backup opens in it; `nil` before there is one.
  private var archived: [KeychainItem]?
  private(set) var restoreCount = 0
  private(set) var deathCount = 0

  init(_ walk: Walk) throws {
    self.walk = walk
    desk = try Desk(seed: "walk \(walk.seed)")
    path = desk.directory.path(walk.seed % 2 == 0 ? "b.tar" : "b")
    _ = try desk.phone("maker", passcode: "1111")
    _ = try desk.phone("other", passcode: "2222", syncing: walk.seed % 5 == 0)
  }

  /// Takes the steps in order and returns the first difference, or `nil` if there is no difference.
  func run() -> String? {
    for step in walk.steps {
      do {
        try take(step)
      } catch {
        return "\(step): \(error)"
      }
    }
    return nil
  }

  private func take(_ step: Walk.Step) throws {
    switch step.action {
    case .plant: try plant(step)
    case .change: try change(step)
    case .backUp: try backUp(step)
    case .edit: try edit(step)
    case .rekey: try rekey(step)
    case .restore: try restore(step, onto: "other")
    case .restoreAtHome: try restore(step, onto: "maker")
    }
  }

  private func require(_ holds: Bool, _ text: @autoclosure () -> String) throws {
    if !holds { throw Difference(description: text()) }
  }

  // MARK: Phones

  /// A phone held for changes, by a process that may die.
  private func held<Value>(
    _ name: String, _ death: Death? = nil, _ body: (DeviceSession) throws -> Value
  ) throws -> Value {
    var environment = desk.environment
    environment.files = DeviceFiles(death?.system ?? unsynced)
    let session = try DeviceSet(path: desk.home.path, environment: environment).device(DeviceName(name)).held()
    defer { session.invalidate() }
    return try body(session)
  }

  private func keychain(_ name: String) throws -> HeldKeychain { try held(name) { try HeldKeychain($0) } }

  private func plant(_ step: Walk.Step) throws {
    for (name, most) in [("maker", 4), ("other", 3)] {
      var items: [KeychainItem] = []
      for lane in walk.lanes {
        var random = walk.random(lane, step)
        if name == "other" { random = SeededRandom(seed: random.next()) }
        items += (0..<Int.random(in: 0...most, using: &random)).map { _ in .random(&random, Walk.mark(lane)) }
      }
      try held(name) { session in
        try session.plant(items.filter { $0[.accessControl] == nil && (try? IncomingItem($0)) != nil })
      }
    }
  }

  /// One row of some lanes gets another secret, or goes; every other row stays what it is.
  private func change(_ step: Walk.Step) throws {
    let name = step.number % 2 == 1 ? "maker" : "other"
    for lane in walk.lanes.prefix(4) {
      var random = walk.random(lane, step)
      let before = try keychain(name)
      let rows = before.rows.filter {
        !$0.isTombstone && $0.item?[.account]?.stringValue?.hasSuffix(Walk.mark(lane)) == true
      }
      guard let row = rows.randomElement(using: &random), let key = row.key else { continue }
      let query = ItemQuery(row: RowReference(kind: row.kind, rowID: row.rowID))
      let secret = random.bytes(4)
      let goes = Bool.random(using: &random)
      let death = Death(after: step.death)
      let changes = ItemChanges(secrets: [.valueData: SensitiveBytes(copying: secret)])
      var isHidden = false
      do {
        _ = try held(name, death) { goes ? try $0.delete(query) : try $0.update(query, with: changes) }
      } catch let error as KeyhaulError where "\(error)".hasPrefix("no item matches") {
        // Another user's, or the system's: no search of an app finds it.
        isHidden = true
      } catch  where death.happened {}
      if death.happened { deathCount += 1 }
      let after = try keychain(name).live
      let others = before.live.filter { $0.key != key }
      try require(
        others.allSatisfy { after[$0.key]?.contents == $0.value.contents } && after.count - others.count <= 1,
        "another row changed with \(key)")
      let isNew = goes ? after[key] == nil : after[key]?.secretBytes == secret
      let isOld = after[key]?.contents == before.live[key]?.contents
      try require(isHidden ? isOld : isNew || death.happened && isOld, "\(key) is neither old nor new")
    }
  }

  // MARK: The backup

  private var secretText: String { "password \(password)" }

  private func hardware() throws -> DeviceKey {
    let session = try desk.home.device(DeviceName("maker")).held(.reading)
    defer { session.invalidate() }
    return try session.deviceKey()
  }

  /// As the phone opens them that made it.
  private func opened() throws -> [KeychainItem?] {
    let archive = try BackupArchive.open(.path(path))
    return try archive.open(
      with: archive.unlock(password: Secret(utf8: secretText)), deviceKey: hardware()
    ).items
      .map(\.item)
  }

  /// Whether the backup holds these items and no others, all of which its phone opens.
  private func holds(_ items: [KeychainItem]?) throws -> Bool {
    guard let items else { return (try? BackupArchive.open(.path(path))) == nil }
    guard let found = try? opened() else { return false }
    return found.compactMap { $0?.contents } == items.map(\.contents) && found.count == items.count
  }

  /// Does something to the backup, once more where the process died over it: before that the old one stands or the new.
  private func writing(_ step: Walk.Step, new: inout [KeychainItem], _ body: (FileSystem) throws -> [KeychainItem])
    throws
  {
    let death = Death(after: step.death)
    do {
      new = try body(death.system)
    } catch  where death.happened {
      deathCount += 1
      let old = archived
      let isOld = try holds(old)
      if !isOld { throw Difference(description: "a death left neither backup whole: \(error)") }
      new = try body(unsynced)
    }
    if step.action == .rekey { return }
    try require(try holds(new), "the backup does not hold what it was given")
  }

  private func backUp(_ step: Walk.Step) throws {
    let destination: BackupDestination = path.hasSuffix(".tar") ? .file(path, .tar) : .directory(path)
    let live = try keychain("maker").live
    let death = Death(after: step.death)
    func write(_ system: FileSystem) throws -> Int {
      try held("maker") { session in
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
      count = try write(death.system)
    } catch  where death.happened {
      deathCount += 1
      try require(try holds(archived), "a death left neither backup whole: \(error)")
      count = try write(unsynced)
    }
    password = 0
    let new = try opened().compactMap { $0 }
    try require(new.count == count, "\(new.count) items are in it, \(count) were said to be")
    try require(new.allSatisfy { live[ItemKey($0)]?.message == $0.message }, "an item is not as it is on the phone")
    archived = new
  }

  /// Adds, changes and takes out items of some lanes, as `item` does in a backup.
  private func edit(_ step: Walk.Step) throws {
    guard let old = archived else { return }
    var new: [KeychainItem] = []
    try writing(step, new: &new) { system in
      let archive = try BackupArchive.open(.path(path))
      let key = try archive.unlock(password: Secret(utf8: secretText))
      let opened = try archive.open(with: key, deviceKey: hardware(), for: .rewriting)
      let edited = try EditedKeychain(
        opened, keys: try key.classKeys(deviceKey: hardware()), now: Desk.now,
        random: SeededRandomSource(seed: "\(step)"))
      var items: [KeychainItem?] = old
      for lane in walk.lanes {
        var random = walk.random(lane, step)
        let own = old.indices.filter { old[$0][.account]?.stringValue?.hasSuffix(Walk.mark(lane)) == true }
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
          if let added = try? edited.add(.random(&random, "+" + Walk.mark(lane))) { items.append(added.item) }
        case 1:
          guard let index = own.randomElement(using: &random) else { continue }
          let changes = ItemChanges(secrets: [.valueData: SensitiveBytes(copying: random.bytes(3))])
          if let changed = try? edited.update([index], with: changes) { items[index] = changed.first ?? nil }
        case 2:
          guard let index = own.randomElement(using: &random) else { continue }
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

  private func rekey(_ step: Walk.Step) throws {
    guard let old = archived else { return }
    let next = "password \(password + 1)"
    var new: [KeychainItem] = []
    try writing(step, new: &new) { system in
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
    try require(try holds(old), "with the new password it does not hold what it held")
  }

  // MARK: The restore

  private func restore(_ step: Walk.Step, onto name: String) throws {
    guard let archived else { return }
    let before = try keychain(name)
    let death = Death(after: step.death)
    func run(_ death: Death?) throws -> MigrationPlan {
      try held(name, death) { session in
        let archive = try BackupArchive.open(.path(path))
        let opened = try archive.open(
          with: archive.unlock(password: Secret(utf8: secretText)), deviceKey: session.deviceKey())
        return try session.restore(opened, policy: step.policy)
      }
    }
    let plan: MigrationPlan
    do {
      plan = try run(death)
    } catch  where death.happened {
      deathCount += 1
      try require(try keychain(name).image == before.image, "a death left a part of a restore: \(error)")
      plan = try run(nil)
    }
    restoreCount += 1
    try require(plan.decisions.count == archived.count, "the plan speaks of \(plan.decisions.count) items")
    let differences = PlanCheck(plan, of: archived, before: before, after: try keychain(name)).differences
    try require(differences.isEmpty, "\(differences)")
  }
}
