import KeyhaulKit
import Reports

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
  var code: Int32 { codeAndID.code }

  /// The name in machine-readable output.
  var id: String { codeAndID.id }

  /// Lists of results use the same words beside the same codes.
  private var codeAndID: (code: Int32, id: String) {
    func of(_ word: BackupResult) -> (Int32, String) { (word.code, word.rawValue) }
    return switch self {
    case .ok: of(.ok)
    case .failed: of(.failed)
    case .differs: of(.differs)
    case .partial: of(.partial)
    case .noMatch: of(.noMatch)
    case .doneBut: of(.doneBut)
    case .notFound: of(.notFound)
    case .busy: of(.busy)
    case .wrongPassword: of(.wrongPassword)
    case .needsPassword: of(.needsPassword)
    case .damaged: of(.damaged)
    case .refused: of(.refused)
    case .locked: of(.locked)
    case .stalePlan: of(.stalePlan)
    case .usage: of(.usage)
    case .signal(let number): (128 &+ number, "signal")
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
