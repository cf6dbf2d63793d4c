public import Basics
import KeychainFormats

/// Why a file could not be read as a dump of a keychain. What happens to a single item is `DumpFault` instead.
public struct KeychainDumpError: ExplainedError, Equatable {
  /// Why, for a program to switch on.
  public enum Code: String, Sendable {
    /// The bytes are no property list or JSON that can be read.
    case unreadable
    /// They are, and follow none of the known forms.
    case unknownForm
    /// A backup's own keychain file: its items are sealed with the keys of the backup.
    case backupKeychain
    /// More, deeper or larger than a named limit accepts.
    case overLimit
    /// The ciphers that open sealed entries do not work here.
    case failed
  }

  /// Why, for a program to switch on.
  public let code: Code
  /// The fact found, with its place where it has one. It quotes no value.
  public let reason: String

  /// Creates an error.
  public init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// What is said of every error with the same code.
  public var meaning: ErrorMeaning {
    switch code {
    case .unreadable:
      .init(.refused, "it is not a readable keychain dump", advice: "another copy of it, or a backup")
    case .unknownForm:
      .init(.refused, "it is not a backup or a known keychain dump", advice: "check the path")
    case .backupKeychain:
      .init(
        .refused, "it is the encrypted keychain of a backup", advice: "the backup that contains it, with its password")
    case .overLimit: .init(.refused, "the dump is over a limit", advice: "don't trust this file")
    case .failed:
      .init(.failed, "a cryptographic operation failed", advice: "check the installation of OpenSSL's libcrypto")
    }
  }
}
