import KeyhaulKit

/// How the program ends. Scripts switch on these numbers, so that they only ever get added to.
enum CommandStatus: Hashable, Sendable {
  /// Done; items that stay behind by a rule are announced, and are no error.
  case ok
  /// An error without a code of its own.
  case failed
  /// With `--exit-code`: a difference was found.
  case differs
  /// Done, but some items or payloads are damaged or missing.
  case partial
  /// Nothing matched.
  case noMatch
  /// The change was made and stands; something after it failed.
  case doneBut
  /// The device or archive does not exist.
  case notFound
  /// Another process uses the device or the backup.
  case busy
  /// The password or passcode is wrong.
  case wrongPassword
  /// A password or passcode is needed, and none was given. It has the code of `wrongPassword` and its own name.
  case needsPassword
  /// The archive's bytes are not what was written.
  case damaged
  /// Not a backup, hostile or unsupported.
  case refused
  /// The device must be unlocked first.
  case locked
  /// The archive or the device changed since the plan was made.
  case stalePlan
  /// Wrong arguments.
  case usage
  /// Ended by a signal.
  case signal(Int32)

  /// A status for every fixed code, in the order of the codes.
  static let fixed: [CommandStatus] = [
    .ok, .failed, .differs, .partial, .noMatch, .doneBut, .notFound, .busy, .wrongPassword, .damaged, .refused,
    .locked, .stalePlan, .usage,
  ]

  /// The number that the shell sees.
  var code: Int32 {
    switch self {
    case .ok: 0
    case .failed: 1
    case .differs: 2
    case .partial: 3
    case .noMatch: 4
    case .doneBut: 5
    case .notFound: 10
    case .busy: 11
    case .wrongPassword, .needsPassword: 12
    case .damaged: 13
    case .refused: 14
    case .locked: 15
    case .stalePlan: 16
    case .usage: 64
    case .signal(let number): 128 &+ number
    }
  }

  /// The name in machine-readable output.
  var id: String {
    switch self {
    case .ok: "ok"
    case .failed: "failed"
    case .differs: "differs"
    case .partial: "partial"
    case .noMatch: "no-match"
    case .doneBut: "done-but"
    case .notFound: "not-found"
    case .busy: "busy"
    case .wrongPassword: "wrong-password"
    case .needsPassword: "needs-password"
    case .damaged: "damaged"
    case .refused: "refused"
    case .locked: "locked"
    case .stalePlan: "stale-plan"
    case .usage: "usage"
    case .signal: "signal"
    }
  }
}

extension CommandStatus {
  /// The exit status for a kind of library error.
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
