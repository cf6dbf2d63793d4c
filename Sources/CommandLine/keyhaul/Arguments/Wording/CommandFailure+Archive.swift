import KeyhaulKit

extension CommandFailure {
  /// An error about an archive, in the words of what the user named.
  init(archive error: any ExplainedError, name: String) {
    if let error = error as? KeyhaulError, error.code == .underlying, let underlying = error.underlying {
      self.init(archive: underlying, name: name)
      return
    }
    self.init(
      CommandStatus(error.category), Self.archiveMessage(error, name: name), why: error.reason, try: error.call,
      of: error.systemReason)
    if (error as? DataProtectionError)?.code == .roundsOverLimit {
      advice = "don't trust this file; --max-rounds raises the limit"
    }
  }

  /// What keeps a device from being backed up or restored to. Where its summary names the device, it stands alone.
  init(_ error: KeyhaulError, using device: String) {
    self.init(error, doing: error.code == .deviceLocked ? nil : "cannot use \(device)")
  }

  private static func archiveMessage(_ error: any ExplainedError, name: String) -> String {
    switch error {
    case let error as KeyhaulError:
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
    case let error as DataProtectionError:
      switch error.code {
      case .roundsOverLimit: "refused to open \(name)"
      case .damagedKeybag, .missingField: "\(name)'s keybag is damaged"
      default: "cannot open \(name): \(error.summary)"
      }
    case let error as FormatError where error.format == .keybag: "\(name)'s keybag is damaged"
    default: "cannot open \(name): \(error.summary)"
    }
  }

  /// A keybag of which some classes do not unwrap; what the others open was used.
  static func damagedKeybag(of name: String, report: String) -> CommandFailure {
    CommandFailure(
      .damaged, "\(name)'s keybag is damaged", why: report,
      try: "another copy; items of that class are lost in this copy")
  }
}

extension CommandFailure {
  /// An error of a device, told with the name that the user knows it by.
  init(_ error: KeyhaulError, device: String) {
    // A wait for another process that a signal ended has not acquired a lock either.
    if error.isStopped || error.code == .deviceBusy, let signal = Interruption.pending {
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
    self.init(CommandStatus(error.category), message, why: error.reason, try: error.call, of: error.errno)
    stage = error.stage
    // Nothing was unlocked, and the device is another one than before.
    if error.code == .erased { (status, done) = (.doneBut, message) }
  }
}

extension KeyhaulError {
  /// Whether it is about a device or about the keychain of a device.
  var isOfDevice: Bool {
    code.domain == .device || code.domain == .keychainStore || (code == .underlying && subject != nil)
  }

  /// Whether the derivation of a passcode's key, or a change of many items, was told to stop before it changed anything.
  var isStopped: Bool {
    code == .cancelled || (underlying as? DataProtectionError)?.code == .cancelled
  }
}
