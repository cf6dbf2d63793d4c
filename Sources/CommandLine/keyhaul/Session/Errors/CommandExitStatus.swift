import KeyhaulKit
import Reports

/// The exit status of the program. Scripts depend on the numbers, so numbers are only ever added.
enum CommandExitStatus: Hashable, Sendable {
  /// Success. Items that a rule leaves behind are reported, but are not an error.
  case ok
  /// An error without a code of its own.
  case failed
  /// With `--exit-code`: a difference was found.
  case differs
  /// Done, but some items or payloads are damaged or missing.
  case partial
  /// Nothing matched.
  case noMatch
  /// The change was made and is final, but a later step failed.
  case doneBut
  /// The device or backup does not exist.
  case notFound
  /// Another process is using the device or the backup.
  case busy
  /// The password or passcode is wrong.
  case wrongPassword
  /// A password or passcode is required but was not given. Has the same code as `wrongPassword`, but its own ID.
  case needsPassword
  /// The backup's bytes have changed since it was written.
  case damaged
  /// Not a backup, malicious, or not supported.
  case refused
  /// The device must be unlocked first.
  case locked
  /// The backup or the device has changed since the plan was made.
  case stalePlan
  /// Wrong arguments.
  case usage
  /// Ended by the signal with this number.
  case signal(Int32)

  /// A status for every fixed code, in the order of the codes.
  static let fixed: [CommandExitStatus] = [
    .ok, .failed, .differs, .partial, .noMatch, .doneBut, .notFound, .busy, .wrongPassword, .damaged, .refused,
    .locked, .stalePlan, .usage,
  ]

  /// The number that the shell receives.
  var code: Int32 { codeAndID.code }

  /// The ID in machine-readable output.
  var id: String { codeAndID.id }

  private var codeAndID: (code: Int32, id: String) {
    switch self {
    case .ok: (0, "ok")
    case .failed: (1, "failed")
    case .differs: (2, "differs")
    case .partial: (3, "partial")
    case .noMatch: (4, "no-match")
    case .doneBut: (5, "done-but")
    case .notFound: (10, "not-found")
    case .busy: (11, "busy")
    case .wrongPassword: (12, "wrong-password")
    case .needsPassword: (12, "needs-password")
    case .damaged: (13, "damaged")
    case .refused: (14, "refused")
    case .locked: (15, "locked")
    case .stalePlan: (16, "stale-plan")
    case .usage: (64, "usage")
    // As in POSIX shells.
    case .signal(let number): (128 &+ number, "signal")
    }
  }
}

extension CommandExitStatus {
  /// Creates the exit status for a category of library errors.
  init(_ category: ErrorCategory) {
    switch category {
    case .failed: self = .failed
    case .notFound: self = .notFound
    case .busy: self = .busy
    case .wrongPassword: self = .wrongPassword
    case .damaged: self = .damaged
    case .refused: self = .refused
    case .locked: self = .locked
    case .stalePlan: self = .stalePlan
    case .usage: self = .usage
    }
  }
}

extension CommandExitStatus {
  /// Creates the exit status for a word of the RESULT column.
  init(_ result: BackupResult) {
    switch result {
    case .whole, .unproven, .foreign, .consistent, .counted, .notCounted, .noKeychain, .planned, .asExpected, .ok:
      self = .ok
    case .incomplete, .unconfirmed, .otherDeviceKey, .noSeal, .partial: self = .partial
    case .failed: self = .failed
    case .differs: self = .differs
    case .noMatch: self = .noMatch
    case .doneBut: self = .doneBut
    case .notFound: self = .notFound
    case .busy: self = .busy
    case .wrongPassword: self = .wrongPassword
    case .needsPassword: self = .needsPassword
    case .damaged: self = .damaged
    case .refused: self = .refused
    case .locked: self = .locked
    case .stalePlan: self = .stalePlan
    case .usage: self = .usage
    }
  }
}

extension BackupResult {
  /// The exit code of the word.
  var code: Int32 { CommandExitStatus(self).code }
}
