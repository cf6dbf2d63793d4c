/// A suggestion for what to do about an error. A program may show one of its own commands instead.
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
