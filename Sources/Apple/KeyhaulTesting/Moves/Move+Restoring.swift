import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import KeyhaulKit
import VirtualDevice

extension Move {
  /// The password of the backup that `restore` makes.
  private static let password = "correct horse battery staple"
  /// Of the backup password's derivation. Real phones ask for ten million; nobody attacks a backup that is gone in a
  /// moment.
  private static let rounds = 1

  /// Carries the move out: a real backup, written to a file, and a real restore of it. What came of each item is held
  /// against what the move had said.
  ///
  /// The same phone is erased first, and is given its passcode again. A new phone has the apps and the passcode of the
  /// old one.
  ///
  /// - Returns: The phone that the keychain is on afterwards.
  /// - Throws: `.outdatedMove` where the phone has changed since the move was decided; `.locked` where one of the two
  ///   is.
  @discardableResult
  public func restore() throws(PhoneError) -> Phone {
    let path = "\(source.home.home.path)/\(UUID().uuidString).tar"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try source.withSession { (session) throws(PhoneError) in
      guard session.record.revision == revision else {
        throw PhoneError(
          .outdatedMove, .stalePlan, "the move was planned for another keychain",
          "the phone's keychain has changed since", advice: "move(to:backup:) again, after the change")
      }
      try telling { () throws(MigrationError) in
        let prepared = try BackupExporter.prepare(session, password: secret, rounds: Self.rounds, listsExported: false)
        _ = try prepared.write(to: .file(path, .tar))
      }
    }
    let target = try arrivingPhone()
    let plan = try target.withSession(.writing) { (session) throws(PhoneError) in
      let deviceKey = try telling { () throws(VirtualDeviceError) in try session.deviceKey() }
      let opened = try telling { () throws(BackupArchiveError) in try BackupArchive.open(.path(path)) }
      let archive = try telling { () throws(ArchivedKeychainError) in
        try OpenedArchive(opened, password: secret, deviceKey: deviceKey.copy())
      }
      return try telling { () throws(MigrationError) in
        let plan = try Restorer.plan(archive, onto: session, policy: .replace)
        try Restorer.restore(plan, onto: session)
        return plan
      }
    }
    try check(plan)
    return target
  }

  private var secret: Secret? { backup == .encrypted ? Secret(utf8: Self.password) : nil }

  private func arrivingPhone() throws(PhoneError) -> Phone {
    switch destination {
    case .phone(let other): return other
    case .made(.newPhone): return try Phone(like: source)
    case .made(.samePhone):
      let passcode = source.passcode
      try source.erase()
      if let passcode { try source.setPasscode(passcode) }
      return source
    }
  }

  /// Holds what the restore did against what was said of it.
  private func check(_ plan: MigrationPlan) throws(PhoneError) {
    let done = plan.decisions.map { MovedItem($0, isInBackup: true, way: "").fate.kind }
    guard done == items.prefix(backedUpCount).map(\.fate.kind) else {
      throw PhoneError(
        .otherOutcome, .failed, "the restore did not do what the move predicted",
        "of \(backedUpCount) items in the backup, \(plan.summary.migrates) arrived",
        advice: "report it: this is a bug in Keyhaul")
    }
  }
}
