import KeychainFormats
import VirtualDevice

/// An authentication policy. Source: Apple `LAContext.h`.
public enum LAPolicy: Int, Sendable, CaseIterable {
  /// Only biometry.
  case deviceOwnerAuthenticationWithBiometrics = 1
  /// Biometry or the passcode.
  case deviceOwnerAuthentication = 2
}

/// The sensor of a device. Virtual devices have `faceID`.
public enum LABiometryType: Int, Sendable {
  /// No sensor.
  case none
  /// A fingerprint sensor.
  case touchID
  /// A face sensor.
  case faceID
}

/// A credential that an app can provide instead of a dialog.
public enum LACredentialType: Int, Sendable {
  /// The password for items with `.applicationPassword`.
  case applicationPassword = 0
}

/// An operation with an item or key that has an access control. Source: Apple `LAContext.h`.
public enum LAAccessControlOperation: Int, Sendable, CaseIterable {
  /// Creating an item.
  case createItem = 0
  /// Reading an item.
  case useItem
  /// Creating a key.
  case createKey
  /// Signing with a key.
  case useKeySign
  /// Decrypting with a key.
  case useKeyDecrypt
  /// Exchanging a secret with a key.
  case useKeyKeyExchange

  /// The operation whose constraints apply.
  var accessOperation: AccessOperation {
    switch self {
    case .createItem, .createKey: .encrypt
    case .useItem, .useKeyDecrypt: .decrypt
    case .useKeySign: .sign
    case .useKeyKeyExchange: .computeKey
    }
  }
}
