/// An error with a description for people and a category that programs can switch on.
///
/// A conforming type never contains key material, a password or an item's value.
public protocol ExplainedError: Error, Sendable, CustomStringConvertible {
  /// The description that all errors of this kind share.
  var meaning: ErrorMeaning { get }
  /// The specific reason, with its location: "none of 11 class keys unwraps with it".
  var reason: String { get }
  /// Whether the error occurred before or after the change was committed.
  var stage: CommitStage { get }
}

/// Whether an error occurred before or after a change was committed.
///
/// An error after the commit undoes nothing, so a caller that receives one must not repeat the change.
public enum CommitStage: String, Sendable, CaseIterable {
  /// No part of the change was made, or no change was intended.
  case beforeCommit
  /// The change was made and is permanent.
  case afterCommit
}

extension ExplainedError {
  /// The kind of failure, from which the program derives its exit code.
  public var category: ErrorCategory { meaning.category }
  /// A short description without a subject, in lower case and without a full stop: "the password is wrong".
  public var summary: String { meaning.summary }
  /// A suggestion for the next step: "the password set when the backup was made".
  public var advice: String { meaning.advice }

  /// Before the commit, unless the error's type overrides this.
  public var stage: CommitStage { .beforeCommit }

  public var description: String { "\(summary): \(reason)" }
}

/// The part of an error's text that depends only on its kind, not on the specific reason.
public struct ErrorMeaning: Sendable, Hashable {
  /// The kind of failure, from which the program derives its exit code.
  public let category: ErrorCategory
  /// A short description in lower case and without a full stop: "the password is wrong".
  public let summary: String
  /// A suggestion for the next step, which a program can express as a command of its own.
  public let remedy: Remedy
  /// The suggestion in words that fit every program.
  public var advice: String { remedy.sentence }

  /// Creates the description of one kind of error.
  package init(_ category: ErrorCategory, _ summary: String, advice remedy: Remedy) {
    self.category = category
    self.summary = summary
    self.remedy = remedy
  }
}

/// The kinds of failure that a caller can handle. The raw value is the identifier in machine-readable output.
public enum ErrorCategory: String, Sendable, CaseIterable {
  /// The operation failed for another reason, such as a full disk.
  case failed
  /// A named device, backup or item does not exist.
  case notFound = "not-found"
  /// Another process is using the device; the same call may succeed later.
  case busy
  /// The password or passcode is wrong.
  case wrongPassword = "wrong-password"
  /// The bytes do not match their format or their digest.
  case damaged
  /// A limit, a rule or a precaution prevents the operation, which would otherwise be possible.
  case refused
  /// The device is locked, and the requested data can be read only while it is unlocked.
  case locked
  /// The device or the backup has changed since the plan was made.
  case stalePlan = "stale-plan"
  /// The arguments contradict each other, or one is missing.
  case usage
}

/// A suggestion for resolving an error. A program can express it as a command of its own.
public enum Remedy: Sendable, Hashable {
  /// A suggestion in words, in lower case and without a full stop: "free some space".
  case words(String)
  /// List the existing devices.
  case listDevices
  /// Wait until no other process uses the device or backup.
  case waitForOtherProcess
  /// Unlock the device with this name.
  case unlock(device: String)
  /// Set a passcode on the device with this name.
  case setPasscode(device: String)
  /// Change the passcode of the device with this name.
  case changePasscode(device: String)
  /// Remove the passcode. Setting an empty one does not remove it.
  case removePasscode
  /// Use a device with this version of its system, or a later one.
  case newerSystem(version: String)
  /// Keep large data in memory instead of in a temporary file.
  case keepInMemory
  /// List the items with their indexes.
  case listItems

  /// The suggestion in words that fit every program, in lower case and without a full stop.
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

extension Remedy {
  /// The general suggestion for a damaged file: use another copy of it.
  package static let anotherCopy: Remedy = "use another copy"
}

extension Remedy: ExpressibleByStringInterpolation {
  /// Creates a suggestion in words.
  public init(stringLiteral text: String) { self = .words(text) }
}

/// Formats numbers, durations and lists for people.
package enum HumanReadable {
  /// Returns a number with its digits grouped: "41,208".
  package static func grouped(_ number: some BinaryInteger) -> String {
    let digits = String(number.magnitude)
    var result = ""
    for (index, digit) in digits.enumerated() {
      if index > 0, (digits.count - index).isMultiple(of: 3) { result.append(",") }
      result.append(digit)
    }
    return number < 0 ? "-" + result : result
  }

  /// Returns a number with a noun: "1 item", "2 items", "1,204 items".
  package static func count(_ number: Int, _ noun: String, plural: String? = nil) -> String {
    "\(grouped(number)) \(number == 1 ? noun : plural ?? noun + "s")"
  }

  /// Returns a number of bytes: "41,208 bytes".
  package static func bytes(_ number: some BinaryInteger) -> String {
    "\(grouped(number)) \(number == 1 ? "byte" : "bytes")"
  }

  /// Returns a list in words: "a", "a and b", "a, b and c".
  package static func list(_ names: [String], conjunction: String = "and") -> String {
    guard let last = names.last, names.count > 1 else { return names.first ?? "" }
    return names.dropLast().joined(separator: ", ") + " \(conjunction) \(last)"
  }

  /// Returns a duration in words: "about 0.8 s", "about 12 s", "about 6 min", or "under 0.1 s".
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
