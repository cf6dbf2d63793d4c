public import Basics
package import SystemPackage

extension KeyhaulError.Domain {
  /// Errors of a virtual device or of its folder.
  public static let device = Self("device")
}

extension KeyhaulError.Code {
  private static func device(_ rawValue: String, _ category: ErrorCategory, _ summary: String, advice: Remedy) -> Self {
    Self(rawValue, of: .device, category, summary, advice: advice)
  }

  fileprivate static let ioRemedy: Remedy =
    "check the folder's owner, its permissions and the free space, and run it again"

  /// There is no device of this name.
  public static let deviceNotFound = device("notFound", .notFound, "there is no such device", advice: .listDevices)
  /// A device with this name already exists.
  public static let exists = device(
    "exists", .usage, "a device with this name already exists", advice: "use another name, or delete that device first")
  /// The path of a new device is in use by something else.
  public static let deviceOccupied = device(
    "occupied", .usage, "the device's path is in use", advice: "use another name, or move away what is there")
  /// The text is not a valid device name.
  public static let badName = device(
    "badName", .usage, "this is not a valid device name",
    advice: "letters, digits, dots, hyphens and underscores; at most 64 of them, the first a letter or digit")
  /// The text is not an iOS version.
  public static let badVersion = device(
    "badVersion", .usage, "this is not an iOS version", advice: "numbers with dots, such as 18.1")
  /// A device cannot be set to erase itself after fewer than one wrong passcode.
  public static let badLimit = device(
    "badLimit", .usage, "this is not a valid number of wrong passcodes", advice: "10, as in iOS")
  /// Another process uses the device.
  public static let deviceBusy = device("busy", .busy, "the device is in use", advice: .waitForOtherProcess)
  /// The passcode does not unlock the keybag.
  public static let wrongPasscode = device(
    "wrongPasscode", .wrongPassword, "the passcode is wrong", advice: "the device's passcode, not a backup's password")
  /// The operation requires an unlocked device.
  public static let locked = device("locked", .locked, "the device is locked", advice: .unlock(device: "the device"))
  /// Files of the device are missing or damaged.
  public static let deviceDamaged = device(
    "damaged", .damaged, "the device is damaged", advice: "delete the device and restore a backup of it to a new one")
  /// The version of `device.json` or of a fixture is not supported.
  public static let unsupportedVersion = device(
    "unsupportedVersion", .refused, "the format version is not supported",
    advice: "a newer version of Keyhaul, which may read it")
  /// The operation requires a passcode, and the device has none.
  public static let noPasscode = device(
    "noPasscode", .usage, "the device has no passcode", advice: .setPasscode(device: "the device"))
  /// The device already has a passcode.
  public static let passcodeSet = device(
    "passcodeSet", .usage, "the device already has a passcode", advice: .changePasscode(device: "the device"))
  /// An empty passcode cannot be set.
  public static let emptyPasscode = device(
    "emptyPasscode", .usage, "a passcode cannot be empty", advice: .removePasscode)
  /// The device has erased itself after too many wrong passcodes.
  public static let erased = device("erased", .failed, "the device has erased itself", advice: "restore a backup of it")
  /// A change was requested in a session that has ended or was opened for reading.
  public static let deviceNotWritable = device(
    "notWritable", .failed, "the device is open for reading only", advice: "open the device again for this change")
  /// The access group is not one of the app's, or the device has no such app.
  public static let notEntitled = device(
    "notEntitled", .failed, "the app may not use this access group",
    advice: "use one of the app's own groups, or add the app to the device")
  /// The file is not a device fixture.
  public static let badFixture = device(
    "badFixture", .usage, "this is not a device fixture", advice: "compare it with the bundled fixtures")
  /// A file operation failed.
  public static let deviceIO = device("io", .failed, "the device cannot be read or written", advice: ioRemedy)

  /// All codes of the domain, for tests.
  package static let deviceCodes: [Self] = [
    .deviceNotFound, .exists, .deviceOccupied, .badName, .badVersion, .badLimit, .deviceBusy, .wrongPasscode, .locked,
    .deviceDamaged, .unsupportedVersion, .noPasscode, .passcodeSet, .emptyPasscode, .erased, .deviceNotWritable,
    .notEntitled, .badFixture, .deviceIO,
  ]
}

extension KeyhaulError {
  /// Creates an error of a device.
  ///
  /// - Parameters:
  ///   - code: The kind of error.
  ///   - device: The device's name or path.
  ///   - reason: The details.
  ///   - errno: The error of a failed system call.
  ///   - underlying: The error of a lower layer that caused this error.
  ///   - stage: Whether the change was already made when the error happened.
  package init(
    _ code: Code, _ device: String, _ reason: String, errno: Errno? = nil, underlying: (any ExplainedError)? = nil,
    stage: CommitStage = .beforeCommit
  ) {
    self.init(
      code, reason, subject: device, meaning: Self.meaning(of: code, device, errno), errno: errno,
      underlying: underlying, stage: stage)
  }

  /// Returns the meaning of a code, with a remedy that names the device.
  private static func meaning(of code: Code, _ device: String, _ errno: Errno?) -> ErrorMeaning {
    func remedy(_ remedy: Remedy) -> ErrorMeaning {
      ErrorMeaning(code.meaning.category, code.meaning.summary, advice: remedy)
    }
    return switch code {
    case .locked: remedy(.unlock(device: device))
    case .noPasscode: remedy(.setPasscode(device: device))
    case .passcodeSet: remedy(.changePasscode(device: device))
    case .deviceIO where errno?.isDiskFull == true:
      ErrorMeaning(.failed, "the disk is full", advice: "free some space, and run it again")
    case .deviceIO where errno != nil: ErrorMeaning(.failed, "the file system refused", advice: Code.ioRemedy)
    default: code.meaning
    }
  }

  /// Returns the error with a different stage. A step can be committed before or after the change to which it belongs.
  ///
  /// - Parameters:
  ///   - stage: The stage of the change.
  ///   - remark: A clause to append to the reason.
  package func at(_ stage: CommitStage, _ remark: String? = nil) -> KeyhaulError {
    with(reason: remark.map { "\(reason); \($0)" }, stage: stage)
  }
}
