import KeychainCrypto
import KeychainFormats
import KeyhaulKit
import VirtualDevice

extension Phone {
  /// What moving the phone's keychain would do. Changes nothing and writes no file.
  ///
  /// - Throws: `.locked` where items cannot be read: a backup needs the phone unlocked, and so does a test of one.
  public func move(to target: Move.Target, backup: Move.Backup) throws(PhoneError) -> Move {
    try decideMove(to: .made(target), backup)
  }

  /// What moving the phone's keychain to another phone would do, in the place of what is there. Changes neither.
  ///
  /// - Throws: `.locked` where items of this phone cannot be read.
  public func move(to other: Phone, backup: Move.Backup) throws(PhoneError) -> Move {
    try decideMove(to: .phone(other), backup)
  }

  /// All four moves that there are: to a new phone and to the same one, from a backup with a password and without.
  ///
  /// - Throws: `.locked` where items cannot be read.
  public func moves() throws(PhoneError) -> AllMoves {
    AllMoves(
      newPhone: try move(to: .newPhone, backup: .encrypted),
      newPhoneUnencrypted: try move(to: .newPhone, backup: .unencrypted),
      samePhone: try move(to: .samePhone, backup: .encrypted),
      samePhoneUnencrypted: try move(to: .samePhone, backup: .unencrypted))
  }

  /// No two phones are held at a time, so that tests which move to and fro do not wait for each other.
  private func decideMove(
    to destination: Move.Destination, _ backup: Move.Backup
  ) throws(PhoneError) -> Move {
    let own = try withSession { (session) throws(PhoneError) in try Outset(session, backup) }
    let plan: MigrationPlan
    switch destination {
    case .made(.samePhone):
      plan = try telling { () throws(KeyhaulError) in try Restorer.plan(own.forecast, ontoEmpty: own.deviceKey) }
    case .made(.newPhone):
      let key = try telling { () throws(DataProtectionError) in
        try HardwareUID(from: SystemRandomSource()).deviceKey()
      }
      plan = try telling { () throws(KeyhaulError) in try Restorer.plan(own.forecast, ontoEmpty: key) }
    case .phone(let other):
      plan = try other.withSession { (target) throws(PhoneError) in
        try telling { () throws(KeyhaulError) in try Restorer.plan(own.forecast, onto: target, policy: .replace) }
      }
    }
    let backedUpCount = own.forecast.exported.count
    let way = Move.way(destination, backup)
    return Move(
      backup: backup,
      items: plan.decisions.map { MovedItem($0, isInBackup: $0.index < backedUpCount, way: way) },
      destination: destination, source: self, revision: own.revision, backedUpCount: backedUpCount)
  }
}

/// What a move begins with: all that is asked of the phone itself.
private final class Outset {
  let forecast: BackupForecast
  let deviceKey: DeviceKey
  let revision: String

  init(_ session: DeviceSession, _ backup: Move.Backup) throws(PhoneError) {
    forecast = try telling { () throws(KeyhaulError) in
      try BackupForecast(of: session, hasPassword: backup == .encrypted, plannedOnce: true)
    }
    deviceKey = try telling { () throws(KeyhaulError) in try session.deviceKey() }
    revision = session.record.revision
  }
}
