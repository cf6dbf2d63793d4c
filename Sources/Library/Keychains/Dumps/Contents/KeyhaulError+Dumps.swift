public import Basics

extension KeyhaulError.Domain {
  /// Errors of a keychain dump. The `KeychainDump` itself describes faults of single entries.
  public static let keychainDump = Self("keychain-dump")
}

extension KeyhaulError.Code {
  private static func dump(_ rawValue: String, _ category: ErrorCategory, _ summary: String, advice: Remedy) -> Self {
    Self(rawValue, of: .keychainDump, category, summary, advice: advice)
  }

  /// The bytes are not a property list or JSON that can be read.
  public static let unreadableDump = dump(
    "unreadable", .refused, "it is not a readable keychain dump", advice: "another copy of it, or a backup")
  /// The bytes are a property list or JSON, but not in a known dump format.
  public static let unknownDump = dump(
    "unknownForm", .refused, "it is not a backup or a known keychain dump", advice: "check the path")
  /// The keychain file of a backup. Its items are encrypted with the backup's keys.
  public static let backupKeychain = dump(
    "backupKeychain", .refused, "it is the encrypted keychain of a backup",
    advice: "the backup that contains it, with its password")
  /// The dump exceeds a limit on sizes, depths or counts.
  public static let dumpOverLimit = dump(
    "overLimit", .refused, "the dump is over a limit", advice: "don't trust this file")
  /// The ciphers that decrypt entries do not work on this computer.
  public static let dumpFailed = dump(
    "failed", .failed, "a cryptographic operation failed", advice: "check the installation of OpenSSL's libcrypto")
}
