package import Keychains
package import VirtualDevice

/// A keychain that a backup is restored to.
///
/// `Restorer` plans for both kinds alike, and restores to both in the same steps.
package enum RestoreTarget {
  /// The keychain of a device, which is held meanwhile.
  case device(DeviceSession)
  /// The keychain of a Simulator.
  case simulator(SimulatorTarget)

  /// The device; `nil` for a Simulator.
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

  /// The identifier of the target's hardware; `nil` for a Simulator, which has no hardware of its own.
  package var identifier: String? {
    device?.record.udid
  }

  /// The counter that every change of a device raises; `r0` for a Simulator, which has no such counter.
  package var revision: String {
    device?.record.revision ?? "r0"
  }

  /// Whether tombstones mean something there. A Simulator is treated as a device that does not synchronize.
  var isSyncing: Bool {
    device?.record.isSyncing ?? false
  }

  /// The target's rows as the planner sees them.
  func rows() throws(MigrationError) -> [TargetRow] {
    switch self {
    case .device(let session): return try Restorer.targetRows(of: session)
    case .simulator(let simulator):
      return try reporting { () throws(KeychainStoreError) in
        var rows: [TargetRow] = []
        for row in simulator.rows { rows.append(try TargetRow(row)) }
        return rows
      }
    }
  }

  /// Checks that every row can be read.
  ///
  /// - Throws: Category `locked` if rows of a device are locked. A Simulator locks nothing.
  package func checkReadable() throws(MigrationError) {
    switch self {
    case .device(let session): try LockedRows.requireNone(on: session)
    case .simulator: return
    }
  }
}

/// A Simulator's keychain as a restore sees it.
package struct SimulatorTarget {
  /// The target's name in messages.
  package let name: String
  let rows: [KeychainRow]
  /// The keychain, held alone; `nil` if the target is only planned for.
  let keychain: SimulatorKeychain?

  /// The number of its items; tombstones are not counted.
  package var itemCount: Int { rows.count { !($0.item?.isTombstone ?? $0.summary.isTombstone) } }

  /// Creates a target.
  ///
  /// - Parameters:
  ///   - name: The name in messages.
  ///   - rows: All rows of the database, as they were read.
  ///   - keychain: The database, held alone and with the content that was read; `nil` to plan only.
  package init(named name: String, rows: [KeychainDatabase.OpenedRow], in keychain: SimulatorKeychain? = nil) {
    self.name = name
    self.rows = rows.map { KeychainRow($0) }
    self.keychain = keychain
  }
}
