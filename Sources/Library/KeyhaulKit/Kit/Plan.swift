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

/// A plan for restoring a backup to a device, and the method that carries it out.
public struct Plan: Sendable {
  /// The decisions about the items of the backup, and the number of the target's items that are removed
  /// (`summary.removed`).
  public let migration: MigrationPlan
  /// The target.
  public let device: VirtualDevice
  private let revision: String

  init(_ migration: MigrationPlan, onto device: VirtualDevice, revision: String) {
    self.migration = migration
    self.device = device
    self.revision = revision
  }

  /// Returns the outcome for the items with a name: `plan["session token"] == .migrates`.
  ///
  /// The name must equal the item's label, account, service or server.
  public subscript(name: String) -> ItemFate { migration[name] }

  /// The decisions about the items that arrive.
  public var arriving: [MigrationPlan.Decision] { migration.decisions.filter { $0.outcome.fate == .migrates } }
  /// The decisions about the undamaged items of the backup that do not arrive, each with its reason. Damaged items are
  /// in `unreadable`.
  public var stayingBehind: [MigrationPlan.Decision] { migration.decisions.filter { $0.outcome.fate == .staysBehind } }
  /// The decisions about the items that are damaged in the backup.
  public var unreadable: [MigrationPlan.Decision] { migration.decisions.filter { $0.outcome.fate == .unreadable } }

  /// Carries out exactly the plan, in one transaction, or nothing.
  ///
  /// - Throws: Category `locked` if the device must be unlocked first; `stalePlan` if it has changed since the plan was
  ///   made; the errors of the device, such as `busy`. An error whose `stage` is `.beforeCommit` leaves the device
  ///   unchanged.
  public func restore() throws(KeyhaulError) {
    let failure = try device.withSession(.writing, verb: "restore") {
      (session) throws(KeyhaulError) in restore(onto: session)
    }
    if let failure { throw failure }
  }

  /// Carries out the plan.
  ///
  /// - Returns: The error of a failed restore, which the caller throws after the session has ended; otherwise `nil`.
  private func restore(onto session: DeviceSession) -> KeyhaulError? {
    guard session.record.revision == revision else {
      return .stalePlan("\(session.name) has changed since (revision \(revision), now \(session.record.revision))")
    }
    do throws(KeyhaulError) { try Restorer.restore(migration, onto: session) } catch { return error }
    return nil
  }
}
