import KeychainCrypto
import KeychainFormats
import KeyhaulKit
import VirtualDevice

extension Phone {
  /// Plans a move of the phone's keychain. Nothing is changed, and no file is written.
  ///
  /// - Throws: `.locked` if items cannot be read, because only an unlocked phone can be backed up.
  public func move(to target: Move.Target, backup: Move.Backup) throws(PhoneError) -> Move {
    try planMove(to: .emptyPhone(target), from: backup)
  }

  /// Plans a move of the phone's keychain to another phone, which replaces that phone's items. Neither phone is
  /// changed.
  ///
  /// - Throws: `.locked` if items of this phone cannot be read.
  public func move(to other: Phone, backup: Move.Backup) throws(PhoneError) -> Move {
    try planMove(to: .phone(other), from: backup)
  }

  /// Plans all four moves: to a new phone and to the same phone, each with an encrypted and an unencrypted backup.
  ///
  /// - Throws: `.locked` if items cannot be read.
  public func moves() throws(PhoneError) -> Moves {
    Moves(
      newPhone: try move(to: .newPhone, backup: .encrypted),
      newPhoneUnencrypted: try move(to: .newPhone, backup: .unencrypted),
      samePhone: try move(to: .samePhone, backup: .encrypted),
      samePhoneUnencrypted: try move(to: .samePhone, backup: .unencrypted))
  }

  /// Plans a move. It uses only one phone at a time. Otherwise, two tests that move between the same phones in opposite
  /// directions could wait for each other forever.
  private func planMove(
    to destination: Move.Destination, from backup: Move.Backup
  ) throws(PhoneError) -> Move {
    let context = try withSession { (session) throws(PhoneError) in try MoveContext(session, backup) }
    let plan = try context.plan(to: destination)
    // The plan lists the backup's items first.
    let backedUpCount = context.simulatedBackup.exported.count
    let moveDescription = Move.description(to: destination, from: backup)
    let items = plan.decisions.map { decision in
      MovedItem(decision, isInBackup: decision.index < backedUpCount, moveDescription: moveDescription)
    }
    return Move(
      backup: backup, items: items, destination: destination, source: self, revision: context.revision,
      backedUpCount: backedUpCount)
  }
}

/// The data from the source phone that a move needs.
private final class MoveContext {
  let simulatedBackup: SimulatedBackup
  let deviceKey: DeviceKey
  let revision: String

  init(_ session: DeviceSession, _ backup: Move.Backup) throws(PhoneError) {
    simulatedBackup = try translatingErrors { () throws(KeyhaulError) in
      try SimulatedBackup(of: session, hasPassword: backup == .encrypted, isPlannedOnce: true)
    }
    deviceKey = try translatingErrors { () throws(KeyhaulError) in try session.deviceKey() }
    revision = session.record.revision
  }

  /// Plans the restore of the backup.
  func plan(to destination: Move.Destination) throws(PhoneError) -> MigrationPlan {
    switch destination {
    case .emptyPhone(.samePhone):
      return try translatingErrors { () throws(KeyhaulError) in
        try Restorer.plan(simulatedBackup, ontoEmpty: deviceKey)
      }
    case .emptyPhone(.newPhone):
      let newDeviceKey = try translatingErrors { () throws(DataProtectionError) in
        try HardwareUID(from: SystemRandomSource()).deviceKey()
      }
      return try translatingErrors { () throws(KeyhaulError) in
        try Restorer.plan(simulatedBackup, ontoEmpty: newDeviceKey)
      }
    case .phone(let other):
      return try other.withSession { (target) throws(PhoneError) in
        try translatingErrors { () throws(KeyhaulError) in
          try Restorer.plan(simulatedBackup, onto: target, policy: .replace)
        }
      }
    }
  }
}
