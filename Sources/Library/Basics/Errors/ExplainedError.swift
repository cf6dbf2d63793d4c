/// What every error of the library can tell the person at the keyboard, and what a program can switch on.
///
/// No conforming type ever carries key material, a password or an item's value.
public protocol ExplainedError: Error, Sendable, CustomStringConvertible {
  /// What is said of every error of its kind.
  var meaning: ErrorMeaning { get }
  /// The fact found, with its place: "none of 11 class keys unwraps with it".
  var reason: String { get }
  /// On which side of the moment in which a change became final it happened.
  var stage: ChangeStage { get }
}

/// Where an error stands to the moment from which on a change is made.
///
/// What fails after it takes nothing back: whoever reads such an error must not do the work again.
public enum ChangeStage: String, Sendable, CaseIterable {
  /// Nothing of the change was made, or nothing was to be changed.
  case beforeCommit
  /// The change was made and stands.
  case afterCommit
}

extension ExplainedError {
  /// What kind of end this is; the program turns it into its exit code.
  public var category: ErrorCategory { meaning.category }
  /// What happened, without a subject: "the password is wrong". Lower case, no full stop.
  public var summary: String { meaning.summary }
  /// One thing to do next: "the password set when the backup was made".
  public var advice: String { meaning.advice }

  /// Before the commit, unless the error's type says otherwise.
  public var stage: ChangeStage { .beforeCommit }

  public var description: String { "\(summary): \(reason)" }
}

/// What an error means to the person at the keyboard and to a program, whatever was found.
public struct ErrorMeaning: Sendable, Hashable {
  /// The kind of failure, from which the program takes its exit code.
  public let category: ErrorCategory
  /// What happened, in lower case and without a full stop: "the password is wrong".
  public let summary: String
  /// One thing to do next; a program words it as a call of its own.
  public let remedy: Remedy
  /// The remedy in words that fit every program.
  public var advice: String { remedy.sentence }

  /// Creates what is said of every error of one kind.
  public init(_ category: ErrorCategory, _ summary: String, advice remedy: Remedy) {
    self.category = category
    self.summary = summary
    self.remedy = remedy
  }
}

/// The kinds of failure a caller can act on. The raw value is the identifier in machine-readable output.
public enum ErrorCategory: String, Sendable, CaseIterable {
  /// The work failed for a reason that is none of the others, such as a disk that is full.
  case failed
  /// Something that was named is not there: a device, an archive, an item.
  case notFound = "not-found"
  /// Somebody else holds the device; the same call may succeed later.
  case busy
  /// The password or passcode opens nothing.
  case wrongPassword = "wrong-password"
  /// The bytes are not what their format or their digest says.
  case damaged
  /// The work could be done and is not: a limit, a rule or a precaution stands against it.
  case refused
  /// The device is locked, and what is asked for can be read only while it is not.
  case locked
  /// The device or the archive is no longer as it was when the plan was made.
  case stalePlan = "stale-plan"
  /// The call contradicts itself, or lacks a part.
  case usage
}

/// One thing to do about an error: a fact, which a program words as a call of its own.
public enum Remedy: Sendable, Hashable {
  /// Something that is done by a person, in lower case and without a full stop: "free some space".
  case words(String)
  /// To see which devices there are.
  case listDevices
  /// To wait until no other process uses the device or backup.
  case waitForOtherProcess
  /// To unlock the device of this name.
  case unlock(device: String)
  /// To set a passcode on the device of this name.
  case setPasscode(device: String)
  /// To change the passcode of the device of this name.
  case changePasscode(device: String)
  /// To remove a passcode, which is not done by setting an empty one.
  case removePasscode
  /// To use a device whose system has this version or a later one.
  case newerSystem(version: String)
  /// To keep what is large in memory instead of in a temporary file.
  case keepInMemory
  /// To see which items there are, each with its index.
  case listItems

  /// The remedy in words that fit every program, in lower case and without a full stop.
  public var sentence: String {
    switch self {
    case .words(let text): text
    case .listDevices: "the name of an existing device"
    case .waitForOtherProcess: "wait until no other process uses it"
    case .unlock(let device): "unlock \(device)"
    case .setPasscode(let device): "set a passcode on \(device)"
    case .changePasscode(let device): "change the passcode of \(device)"
    case .removePasscode: "remove the passcode"
    case .newerSystem(let version): "a device with iOS \(version) or later"
    case .keepInMemory: "set TMPDIR to a folder with free space, or keep the data in memory"
    case .listItems: "one of the indexes in the plan"
    }
  }
}

extension Remedy: ExpressibleByStringInterpolation {
  /// Creates a remedy in words.
  public init(stringLiteral text: String) { self = .words(text) }
}

/// Numbers as people read them.
package enum Amounts {
  /// "41,208"
  package static func grouped(_ number: some BinaryInteger) -> String {
    let digits = String(number.magnitude)
    var result = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { result.append(",") }
      result.append(digit)
    }
    return number < 0 ? "-" + result : result
  }

  /// "1 item", "2 items", "1,204 items"
  package static func count(_ number: Int, _ noun: String, plural: String? = nil) -> String {
    "\(grouped(number)) \(number == 1 ? noun : plural ?? noun + "s")"
  }

  /// "41,208 bytes"
  package static func bytes(_ number: some BinaryInteger) -> String {
    "\(grouped(number)) \(number == 1 ? "byte" : "bytes")"
  }

  /// "a", "a and b", "a, b and c"
  package static func list(_ names: [String], conjunction: String = "and") -> String {
    guard let last = names.last, names.count > 1 else { return names.first ?? "" }
    return names.dropLast().joined(separator: ", ") + " \(conjunction) \(last)"
  }

  /// "about 0.8 s", "about 12 s", "about 6 min"; what nobody notices is "under 0.1 s".
  package static func estimate(_ duration: Duration) -> String {
    let seconds = duration / .seconds(1)
    guard seconds >= 0.095 else { return "under 0.1 s" }
    if seconds < 9.95 {
      let tenths = Int((seconds * 10).rounded())
      return "about \(tenths / 10).\(tenths % 10) s"
    }
    return seconds < 120 ? "about \(Int(seconds.rounded())) s" : "about \(grouped(Int(seconds / 60))) min"
  }
}
