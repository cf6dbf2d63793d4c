import Basics
public import VirtualDevice

extension MigrationPlan.Decision: CustomStringConvertible {
  /// The item's name and what happens to it: "session token: stays-behind (device-bound)".
  public var description: String {
    let name = [identity.label, identity.account, identity.service, identity.server].lazy.compactMap(\.self)
      .first { !$0.isEmpty }
    let reason = outcome.reason.map { " (\($0.rawValue))" } ?? ""
    return "\(name.map { UntrustedText.escaped($0) } ?? "item \(index)"): \(outcome.fate.rawValue)\(reason)"
  }
}

/// What restoring a backup onto a device would do, item by item, and the way to do exactly that.
public struct Plan: Sendable {
  /// The decisions: which items arrive, which stay behind and why, and what of the target is removed.
  public let migration: MigrationPlan
  /// The target.
  public let device: VirtualDevice
  private let revision: String

  init(_ migration: MigrationPlan, onto device: VirtualDevice, revision: String) {
    self.migration = migration
    self.device = device
    self.revision = revision
  }

  /// What becomes of the items with this name: `plan["session token"] == .migrates`.
  ///
  /// An item is meant where its label, account, service or server is the name, to the letter.
  public subscript(name: String) -> ItemFate { migration[name] }

  /// The decisions about the items that arrive.
  public var arriving: [MigrationPlan.Decision] { migration.decisions.filter { $0.outcome.fate == .migrates } }
  /// The decisions about the items of the backup that do not arrive, each with its reason.
  public var stayingBehind: [MigrationPlan.Decision] { migration.decisions.filter { $0.outcome.fate == .staysBehind } }
  /// The decisions about the items that are damaged in the backup.
  public var unreadable: [MigrationPlan.Decision] { migration.decisions.filter { $0.outcome.fate == .unreadable } }

  /// Restores: exactly what the plan says, in one transaction, or nothing.
  ///
  /// - Throws: Category `locked` where the device must be unlocked first; `stalePlan` where it has changed since the plan
  ///   was made. An error whose `stage` is before the commit leaves the device as it was.
  public func restore() throws(KeyhaulError) {
    let refusal = try device.withSession(.writing, verb: "restore") {
      (session) throws(KeyhaulError) in failure(on: session)
    }
    if let refusal { throw refusal }
  }

  /// What kept the plan from being carried out, and nothing where it was.
  private func failure(on session: DeviceSession) -> KeyhaulError? {
    guard session.record.revision == revision else {
      return .stalePlan("\(session.name) has changed since (revision \(revision), now \(session.record.revision))")
    }
    do throws(KeyhaulError) { try Restorer.restore(migration, onto: session) } catch { return error }
    return nil
  }
}
