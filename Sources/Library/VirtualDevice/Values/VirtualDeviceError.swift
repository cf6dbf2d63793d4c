public import Basics
import KeychainFormats
import SystemPackage

/// What went wrong with a virtual device, or with the directory that holds it.
public struct VirtualDeviceError: ExplainedError {
  /// What went wrong with the device.
  public enum Code: String, Sendable, CaseIterable {
    /// There is no device of this name.
    case notFound
    /// A device of this name is there already.
    case exists
    /// Something that is not a device stands where one should be made.
    case occupied
    /// The text cannot be a device's name.
    case badName
    /// The text cannot be an iOS version.
    case badVersion
    /// A device cannot be set to erase itself after fewer than one wrong passcode.
    case badLimit
    /// Another process holds the device.
    case busy
    /// The passcode does not open the keybag.
    case wrongPasscode
    /// The device must be unlocked first.
    case locked
    /// Files of the device are missing or are not what was written.
    case damaged
    /// `device.json` or a fixture is of a version this program does not read.
    case unsupportedVersion
    /// The device has no passcode, and this needs one.
    case noPasscode
    /// The device has a passcode already.
    case passcodeSet
    /// An empty passcode cannot be set.
    case emptyPasscode
    /// Too many wrong passcodes: the device has erased itself.
    case erased
    /// A session that was opened for reading, or that has ended, was asked to change something.
    case notWritable
    /// The app acts on an access group that is not one of its own, or the device has no such app.
    case notEntitled
    /// The fixture is not one.
    case badFixture
    /// The file system refused.
    case io
    /// The keychain database or the data protection below reported `underlying`.
    case keychain
  }

  /// What went wrong, for a program to switch on.
  public let code: Code
  /// The name of the device, or the path, that was asked for.
  public let device: String
  /// The fact found, with its place.
  public let reason: String
  /// What a lower layer reported, where it was one that did.
  package let underlying: (any ExplainedError)?
  /// The error number of the system call that failed (`.io`), or 0.
  package let systemError: CInt
  /// On which side of the change's commit it happened.
  public let stage: ChangeStage

  /// Creates an error of a device.
  package init(
    _ code: Code, _ device: String, _ reason: String, underlying: (any ExplainedError)? = nil, systemError: CInt = 0,
    stage: ChangeStage = .beforeCommit
  ) {
    self.code = code
    self.device = device
    self.reason = reason
    self.underlying = underlying
    self.systemError = systemError
    self.stage = stage
  }

  /// Whether the system had no descriptor or memory left.
  ///
  /// A lower layer's error has only the system's message, not its number.
  package var isShortage: Bool {
    Errno(rawValue: systemError).isShortage || Errno.shortageReasons.contains { reason.lowercased().hasSuffix($0) }
  }

  /// Wraps what a lower layer reported.
  package init(_ device: String, _ underlying: any ExplainedError) {
    self.init(.keychain, device, underlying.reason, underlying: underlying, stage: underlying.stage)
  }

  /// The same error of another change: a step that fails after its own commit may stand before that of the whole.
  ///
  /// - Parameter remark: A clause that follows the reason.
  package func at(_ stage: ChangeStage, _ remark: String? = nil) -> VirtualDeviceError {
    VirtualDeviceError(
      code, device, remark.map { "\(reason); \($0)" } ?? reason, underlying: underlying, systemError: systemError,
      stage: stage)
  }

  /// One sentence and one advice for each code; for `.keychain` those of `underlying`.
  public var meaning: ErrorMeaning {
    switch code {
    case .notFound: .init(.notFound, "there is no such device", advice: .listDevices)
    case .exists:
      .init(.usage, "a device with this name already exists", advice: "use another name, or delete that device first")
    case .occupied:
      .init(.usage, "the device's path is in use", advice: "use another name, or move away what is there")
    case .badName:
      .init(
        .usage, "this is not a valid device name",
        advice: "letters, digits, dots, hyphens and underscores; at most 64 of them, the first a letter or digit")
    case .badVersion: .init(.usage, "this is not an iOS version", advice: "numbers with dots, such as 18.1")
    case .badLimit: .init(.usage, "this is not a valid number of wrong passcodes", advice: "10, as in iOS")
    case .busy: .init(.busy, "the device is in use", advice: .waitForOtherProcess)
    case .wrongPasscode:
      .init(.wrongPassword, "the passcode is wrong", advice: "the device's passcode, not a backup's password")
    case .locked: .init(.locked, "the device is locked", advice: .unlock(device: device))
    case .damaged:
      .init(.damaged, "the device is damaged", advice: "delete the device and restore a backup of it to a new one")
    case .unsupportedVersion:
      .init(.refused, "the format version is not supported", advice: "a newer version of Keyhaul, which may read it")
    case .noPasscode: .init(.usage, "the device has no passcode", advice: .setPasscode(device: device))
    case .passcodeSet:
      .init(.usage, "the device already has a passcode", advice: .changePasscode(device: device))
    case .emptyPasscode:
      .init(.usage, "a passcode cannot be empty", advice: .removePasscode)
    case .erased: .init(.failed, "the device has erased itself", advice: "restore a backup of it")
    case .notWritable:
      .init(.failed, "the device is open for reading only", advice: "open the device again for this change")
    case .notEntitled:
      .init(
        .failed, "the app may not use this access group",
        advice: "use one of the app's own groups, or add the app to the device")
    case .badFixture: .init(.usage, "this is not a device fixture", advice: "compare it with the bundled fixtures")
    case .io where Errno(rawValue: systemError).isDiskFull:
      .init(.failed, "the disk is full", advice: "free some space, and run it again")
    case .io:
      .init(
        .failed, systemError == 0 ? "the device cannot be read or written" : "the file system refused",
        advice: "check the folder's owner, its permissions and the free space, and run it again")
    case .keychain:
      underlying?.meaning
        ?? .init(.failed, "the keychain cannot be used", advice: "check the device's folder")
    }
  }
}

extension VirtualDeviceError: Equatable {
  public static func == (left: Self, right: Self) -> Bool {
    left.code == right.code && left.device == right.device && left.reason == right.reason
      && left.systemError == right.systemError && left.stage == right.stage
      && left.underlying?.description == right.underlying?.description
  }
}
