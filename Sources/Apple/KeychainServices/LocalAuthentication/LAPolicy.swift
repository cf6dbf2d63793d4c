import VirtualDevice

/// What a person is asked for. Source: Apple `LAContext.h`.
public enum LAPolicy: Int, Sendable, CaseIterable {
  /// Biometry alone.
  case deviceOwnerAuthenticationWithBiometrics = 1
  /// Biometry or the passcode.
  case deviceOwnerAuthentication = 2
}

/// The sensor of a device; a virtual one says `faceID`.
public enum LABiometryType: Int, Sendable {
  /// There is none.
  case none
  /// A fingerprint sensor.
  case touchID
  /// A face sensor.
  case faceID
}

/// What an app can bring along in the place of a dialog.
public enum LACredentialType: Int, Sendable {
  /// The password of items made with `.applicationPassword`.
  case applicationPassword = 0
}

/// What is to be done with an item or a key that an access control guards. Source: Apple `LAContext.h`.
public enum LAAccessControlOperation: Int, Sendable, CaseIterable {
  /// An item is made.
  case createItem = 0
  /// An item is read.
  case useItem
  /// A key is made.
  case createKey
  /// A key signs.
  case useKeySign
  /// A key decrypts.
  case useKeyDecrypt
  /// A key agrees on a secret.
  case useKeyKeyExchange

  /// The entry of an access control that decides.
  var accessOperation: AccessOperation {
    switch self {
    case .createItem, .createKey: .encrypt
    case .useItem, .useKeyDecrypt: .decrypt
    case .useKeySign: .sign
    case .useKeyKeyExchange: .computeKey
    }
  }
}
