import KeyhaulKit

/// The output of a command that is one of many, for a combined report.
final class CapturedOutput {
  /// The result, byte for byte.
  private(set) var result: [UInt8] = []
  private(set) var warnings: [Warning] = []

  /// A warning that the command printed.
  struct Warning: Equatable, Sendable {
    let message: String
    let why: String?
    let advice: String?

    init(_ message: String, why: String?, try advice: String?) {
      self.message = message
      self.why = why
      self.advice = advice
    }
  }

  init() {}

  func add(_ bytes: some Collection<UInt8>) { result.append(contentsOf: bytes) }

  /// Adds a warning, unless the same fact was reported before.
  func add(_ warning: Warning) {
    guard !warnings.contains(where: { $0.message == warning.message && $0.why == warning.why }) else { return }
    warnings.append(warning)
  }
}

/// A backup's statements about itself. A statement is `nil` if its file could not be read.
struct BackupMetadata: Equatable, Sendable {
  /// The identifier of the source device, as the backup states it.
  var identifier: String?
  /// The name that the owner gave the device; untrusted.
  var deviceName: String?
  var date: KeychainDate?
  /// `nil` if unknown.
  var isEncrypted: Bool?
  /// "finished", "unfinished" or "damaged"; `nil` if unknown.
  var state: String?
  /// The digest of Manifest.plist, the manifest and the keychain; `nil` if the backup was not opened.
  var digest: String?
  /// Whether the backup has a seal; `nil` if it was not opened.
  var hasSeal: Bool?
  /// Whether the backup is known to differ from its seal. Results with such a seal are never reused.
  var isSealBroken = false
  /// The code at the end of the seal, in hexadecimal; `nil` if there is no readable seal.
  var sealCode: String?

  init() {}
}
