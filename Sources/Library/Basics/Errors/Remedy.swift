/// One thing to do about an error: a fact, which a program words as a call of its own.
public enum Remedy: Sendable, Hashable {
  /// Something that is done by a person, in lower case and without a full stop: "free some space".
  case words(String)
  /// To see which devices there are.
  case listDevices
  /// To wait until nobody uses the device.
  case waitForDevice
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
    case .waitForDevice: "wait until no other process uses it"
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
