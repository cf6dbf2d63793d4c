import KeyhaulKit

extension CommandError {
  /// Creates an error about a backup, with the name that the user typed.
  init(backup error: any ExplainedError, name: String) {
    if let error = error as? KeyhaulError, error.code == .underlying, let underlying = error.underlying {
      self.init(backup: underlying, name: name)
      return
    }
    self.init(
      CommandExitStatus(error.category), Self.message(error, name: name), why: error.reason,
      try: error.commandLineAdvice, of: error.systemReason)
    suggestsAnotherCopy = error.meaning.remedy == .anotherCopy
    if (error as? DataProtectionError)?.code == .roundsOverLimit {
      advice = "don't trust this file; --max-rounds raises the limit"
    }
  }

  /// Creates an error about a device that cannot be backed up or restored to.
  init(_ error: KeyhaulError, using device: String) {
    // The summary for a locked device already contains the device's name.
    self.init(error, failedAction: error.code == .deviceLocked ? nil : "cannot use \(device)")
  }

  private static func message(_ error: any ExplainedError, name: String) -> String {
    switch error {
    case let error as KeyhaulError: message(error, name: name)
    case let error as DataProtectionError: message(error, name: name)
    case let error as FormatError where error.format == .keybag: damagedKeybagMessage(name)
    default: "cannot open \(name): \(error.summary)"
    }
  }

  private static func message(_ error: DataProtectionError, name: String) -> String {
    switch error.code {
    case .roundsOverLimit: "refused to open \(name)"
    case .damagedKeybag, .missingField: damagedKeybagMessage(name)
    default: "cannot open \(name): \(error.summary)"
    }
  }

  private static func message(_ error: KeyhaulError, name: String) -> String {
    switch error.code {
    case .unboundKeychain: "\(name) contains something that no device writes"
    case .notFound: "\(name) does not exist"
    case .notABackup: "\(name) is not a backup"
    case .sealedList: "\(name) keeps its current password"
    case .unsupported, .notStreamable: "\(name) cannot be read: \(error.summary)"
    case .decryptedCopy: "\(name) is a decrypted copy, which can only be read"
    case .falseClaim: "\(name) says that it is encrypted, but it is not"
    case .passwordDenied: "\(name) says that it has no password, but it was made with one"
    case .hostile, .overLimit: "refused to read \(name)"
    case .truncated: "\(name) is cut short"
    case .damaged: "\(name) is damaged"
    case .unfinished: "\(name) was never finished"
    case .manifestMissing: "\(name) is an unfinished backup"
    case .payloadMissing: "\(name) is not complete"
    case .noKeychain: "\(name) contains no keychain"
    case .keyUnavailable: "cannot open \(name): \(error.summary)"
    case .changed: "another process is writing to \(name)"
    case .unreadable, .noTemporarySpace: "could not read \(name)"
    case .libraryMissing: error.summary
    case .unwritable, .noSpace, .streamBroken, .occupied: "could not write \(name)"
    case .busy: "\(name) is in use"
    case .interrupted: "stopped"
    default: "cannot open \(name): \(error.summary)"
    }
  }

  private static func damagedKeybagMessage(_ name: String) -> String { "\(name)'s keybag is damaged" }

  /// Returns the error for a keybag with damaged class keys, after the command has used the intact keys.
  static func damagedKeybag(of name: String, report: String) -> CommandError {
    CommandError(
      .damaged, damagedKeybagMessage(name), why: report,
      try: "another copy; items that need a damaged key are lost in this copy")
  }
}

extension CommandError {
  /// Creates an error about a device, with the name that the user typed.
  init(_ error: KeyhaulError, device: String) {
    // A signal can also end the wait for a device that another process uses.
    if error.isCancellation || error.code == .deviceBusy, let signal = Interruption.pending {
      self = Interruption.failure(signal, state: "no item was changed")
      return
    }
    let message =
      switch error.code {
      case .deviceNotFound: "there is no device named \(device)"
      case .exists: "a device named \(device) already exists"
      case .deviceOccupied: "cannot create \(device): its path is in use"
      case .deviceBusy: "\(device) is in use"
      case .wrongPasscode: "cannot unlock \(device): the passcode is wrong"
      case .locked: "\(device) is locked"
      case .deviceDamaged: "\(device) is damaged"
      case .noPasscode: "\(device) has no passcode"
      case .passcodeSet: "\(device) already has a passcode"
      case .erased: "\(device) has erased itself"
      default: "\(device): \(error.summary)"
      }
    self.init(
      CommandExitStatus(error.category), message, why: error.reason, try: error.commandLineAdvice, of: error.errno)
    stage = error.stage
    // Nothing was unlocked, but the device has changed.
    if error.code == .erased { (status, completedChange) = (.doneBut, message) }
  }
}

extension KeyhaulError {
  /// Whether the error is about a device or its keychain.
  var concernsDevice: Bool {
    code.domain == .device || code.domain == .keychainStore || (code == .underlying && subject != nil)
  }

  /// Whether the user stopped the derivation of a passcode's key, or a change of many items, before anything was
  /// changed.
  var isCancellation: Bool {
    code == .cancelled || (underlying as? DataProtectionError)?.code == .cancelled
  }
}
