import KeyhaulKit
import SystemPackage

/// Why a command ends without having done its work, in the three parts that a person needs.
///
/// Texts are lower case without a full stop. Names in them may be hostile: they are escaped where the failure is shown,
/// so that every failure is. Never holds a secret.
struct CommandFailure: Error, Equatable {
  var status: CommandStatus
  /// What happened, with the name that the user typed.
  var message: String
  /// The fact found, with its place.
  var why: String?
  /// One command or action.
  var advice: String?
  /// Ends the program without a word, as a closed pipe does.
  var isSilent = false
  /// Whether the program that reads the output has ended.
  var isClosedPipe = false
  /// On which side of the moment in which a change became final it happened.
  var stage = CommitStage.beforeCommit
  /// What was done and stands, where that is so: a clause.
  var done: String?
  /// The reason of the system call that failed; `nil` if none did.
  var errno: Errno?

  init(
    _ status: CommandStatus, _ message: String, why: String? = nil, try advice: String? = nil, of errno: Errno? = nil
  ) {
    self.status = status
    self.message = message
    self.why = why
    self.advice = advice
    self.errno = errno
  }

  /// An error of the library, told about what the user named.
  ///
  /// - Parameter subject: What was being done: "cannot open family.backup". The error's summary follows after a colon;
  ///   without a subject it stands alone.
  init(_ error: any ExplainedError, doing subject: String? = nil) {
    self.init(
      CommandStatus(error.category),
      subject.map { "\($0): \(error.summary)" } ?? error.summary,
      why: error.reason,
      try: error.call, of: error.systemReason)
    stage = error.stage
  }

  /// Whatever ended the work: our own failures as they are, the library's explained, others by their description.
  init(any error: any Error) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let explained as any ExplainedError: self.init(explained)
    default: self.init(.failed, "an unexpected error occurred", why: "\(error)")
    }
  }

  /// The failure, with advice for a shortage of descriptors or memory if that is its reason. No other advice helps
  /// then.
  var advisingOfShortage: CommandFailure {
    guard let advice = Self.adviceOfShortage(errno) else { return self }
    var failure = self
    failure.advice = advice
    return failure
  }

  /// Returns the advice for a shortage; `nil` if a shortage is not the reason.
  static func adviceOfShortage(_ errno: Errno?) -> String? {
    guard let errno, errno.isShortage else { return nil }
    return errno == .noMemory
      ? "end other programs, or raise the limit of memory (ulimit -v, or the container's)"
      : "raise the limit of open files: ulimit -n 256"
  }

  static func usage(_ message: String, why: String? = nil, try advice: String? = nil) -> CommandFailure {
    CommandFailure(.usage, message, why: why, try: advice)
  }
}

extension Remedy {
  /// The remedy as a call of the program, or as a flag to add.
  var call: String {
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
  /// One thing to do next, as a call of the program where it has one.
  var call: String { meaning.remedy.call }

  /// The reason of the system call that failed; `nil` if none did.
  var systemReason: Errno? { (self as? KeyhaulError)?.errno }
}
