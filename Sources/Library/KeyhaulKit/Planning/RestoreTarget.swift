import Basics
package import Keychains
package import VirtualDevice

/// The target keychain of a restore.
///
/// `Restorer` plans for both kinds alike, and restores to both in the same steps.
package enum RestoreTarget {
  /// The keychain of a device, whose file lock is kept during the restore.
  case device(DeviceSession)
  /// The keychain of a Simulator.
  case simulator(SimulatorTarget)

  /// The device; `nil` if the target is a Simulator.
  package var device: DeviceSession? {
    switch self {
    case .device(let session): session
    case .simulator: nil
    }
  }

  /// The target's name in messages.
  package var name: String {
    switch self {
    case .device(let session): session.name
    case .simulator(let simulator): simulator.name
    }
  }

  /// The identifier of the target's hardware; `nil` if the target is a Simulator, which has no hardware of its own.
  package var identifier: String? {
    device?.record.udid
  }

  /// The revision of a target without changes or without a revision counter.
  package static let noRevision = "r0"

  /// The revision counter, which every change of a device increments; `r0` for a Simulator, which has no counter.
  package var revision: String {
    device?.record.revision ?? Self.noRevision
  }

  /// Whether tombstones have an effect on the target. A Simulator is treated as a device that does not synchronize.
  var isSyncing: Bool {
    device?.record.isSyncing ?? false
  }

  /// Returns the target's rows in the planner's form.
  func rows() throws(KeyhaulError) -> [TargetRow] {
    switch self {
    case .device(let session): return try Restorer.targetRows(of: session)
    case .simulator(let simulator):
      var rows: [TargetRow] = []
      for row in simulator.rows { rows.append(try TargetRow(row)) }
      return rows
    }
  }

  /// Checks that every row can be read. iOS decrypts every row first, to keep its own items. A row whose class key is
  /// not in memory ends the restore, except in the passcode class. For a Simulator, nothing is checked.
  ///
  /// - Throws: Category `locked` if the class key of a row is not in memory.
  package func requireReadableRows() throws(KeyhaulError) {
    switch self {
    case .device(let session): try LockedRows.requireNone(on: session)
    case .simulator: return
    }
  }
}

/// A Simulator's keychain as the target of a restore.
package struct SimulatorTarget {
  /// The target's name in messages.
  package let name: String
  let rows: [KeychainRow]
  /// The keychain, whose file lock is held; `nil` if the target is only for planning.
  let keychain: SimulatorKeychain?

  /// The number of items, without tombstones.
  package var itemCount: Int { rows.count { !($0.item?.isTombstone ?? $0.summary.isTombstone) } }

  /// Creates a target for planning.
  ///
  /// - Parameters:
  ///   - name: The name in messages.
  ///   - rows: All rows of the database, as they were read.
  package init(named name: String, rows: [KeychainDatabase.DecryptedRow]) {
    self.init(name: name, rows: rows.map { KeychainRow($0) }, keychain: nil)
  }

  private init(name: String, rows: [KeychainRow], keychain: SimulatorKeychain?) {
    self.name = name
    self.rows = rows
    self.keychain = keychain
  }

  /// Returns the target for carrying out a restore.
  ///
  /// - Parameter keychain: The database, whose file lock is held and whose content is as it was read.
  package func restorable(to keychain: SimulatorKeychain) -> SimulatorTarget {
    SimulatorTarget(name: name, rows: rows, keychain: keychain)
  }
}
