import KeyhaulKit
import SystemPackage

/// An error that ends a command, in three parts: what happened, why, and what to try.
///
/// Texts begin with a lower-case letter and have no full stop. They may contain untrusted names, which are escaped when
/// the error is shown. They never contain a secret.
struct CommandError: Error, Equatable {
  var status: CommandExitStatus
  /// A description of what happened, with the name that the user typed.
  var message: String
  /// The cause, with the position in the file if there is one.
  var why: String?
  /// A command or action to try.
  var advice: String?
  /// Whether the library's advice is to use another copy of a damaged file. A command may replace this advice.
  var suggestsAnotherCopy = false
  /// Whether the program ends without a message, as after a closed pipe.
  var isSilent = false
  /// Whether the program that reads the output has ended.
  var isClosedPipe = false
  /// Whether the error occurred before or after a change became final.
  var stage = CommitStage.beforeCommit
  /// The change that was already made, as a clause; `nil` if nothing was changed.
  var completedChange: String?
  /// The error number of the system call that failed; `nil` if no call failed.
  var errno: Errno?

  init(
    _ status: CommandExitStatus, _ message: String, why: String? = nil, try advice: String? = nil,
    of errno: Errno? = nil
  ) {
    self.status = status
    self.message = message
    self.why = why
    self.advice = advice
    self.errno = errno
  }

  /// Creates an error from an error of the library.
  ///
  /// - Parameter failedAction: The failed action, such as "cannot open family.backup", to which the error's summary is
  ///   appended; `nil` if the summary is complete by itself.
  init(_ error: any ExplainedError, failedAction: String? = nil) {
    self.init(
      CommandExitStatus(error.category),
      failedAction.map { "\($0): \(error.summary)" } ?? error.summary,
      why: error.reason,
      try: error.commandLineAdvice, of: error.systemReason)
    stage = error.stage
    suggestsAnotherCopy = error.meaning.remedy == .anotherCopy
  }

  /// Creates an error from any error. Errors of this type are kept, errors of the library are explained, and others are
  /// described.
  init(any error: any Error) {
    switch error {
    case let failure as CommandError: self = failure
    case let explained as any ExplainedError: self.init(explained)
    default: self.init(.failed, "an unexpected error occurred", why: "\(error)")
    }
  }

  /// This error. If the process has run out of file descriptors or memory, advice about that replaces the original
  /// advice, which would not help.
  var withShortageAdvice: CommandError {
    guard let advice = Self.shortageAdvice(errno) else { return self }
    var failure = self
    failure.advice = advice
    return failure
  }

  /// Returns the advice for a shortage of file descriptors or memory; `nil` if the error number means something else.
  static func shortageAdvice(_ errno: Errno?) -> String? {
    guard let errno, errno.isResourceShortage else { return nil }
    return errno == .noMemory
      ? "end other programs, or raise the limit of memory (ulimit -v, or the container's)"
      : "raise the limit of open files (ulimit -n)"
  }

  static func usage(_ message: String, why: String? = nil, try advice: String? = nil) -> CommandError {
    CommandError(.usage, message, why: why, try: advice)
  }
}

extension Remedy {
  /// The advice for a user of this program, as a command or a flag to add if there is one.
  var commandLineAdvice: String {
    switch self {
    case .words(let text): text
    case .listDevices: "keyhaul device list"
    case .waitForOtherProcess: "wait, or add --wait 30s"
    case .unlock(let device): "keyhaul device unlock \(ShellQuoting.quote(device))"
    case .setPasscode(let device): "keyhaul device passcode set \(ShellQuoting.quote(device))"
    case .changePasscode(let device): "keyhaul device passcode change \(ShellQuoting.quote(device))"
    case .removePasscode: "keyhaul device passcode remove, to leave the device without one"
    case .newerSystem(let version): "a device created with --ios \(version) or later"
    case .keepInMemory: "set TMPDIR to a folder with free space, or add --memory"
    case .listItems: "plan --json shows the index of each item"
    }
  }
}

extension ExplainedError {
  /// The advice for a user of this program, as a command or a flag to add if there is one.
  var commandLineAdvice: String { meaning.remedy.commandLineAdvice }

  /// The error number of the system call that failed; `nil` if no call failed.
  var systemReason: Errno? { (self as? KeyhaulError)?.errno }
}
