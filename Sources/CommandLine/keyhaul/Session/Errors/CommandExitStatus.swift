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

  /// The code and ID. They are taken from `BackupResult`, so that lists of results use the same codes.
  private var codeAndID: (code: Int32, id: String) {
    func values(of result: BackupResult) -> (Int32, String) { (result.code, result.rawValue) }
    return switch self {
    case .ok: values(of: .ok)
    case .failed: values(of: .failed)
    case .differs: values(of: .differs)
    case .partial: values(of: .partial)
    case .noMatch: values(of: .noMatch)
    case .doneBut: values(of: .doneBut)
    case .notFound: values(of: .notFound)
    case .busy: values(of: .busy)
    case .wrongPassword: values(of: .wrongPassword)
    case .needsPassword: values(of: .needsPassword)
    case .damaged: values(of: .damaged)
    case .refused: values(of: .refused)
    case .locked: values(of: .locked)
    case .stalePlan: values(of: .stalePlan)
    case .usage: values(of: .usage)
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
