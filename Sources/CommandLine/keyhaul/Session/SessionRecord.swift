import KeyhaulKit

/// What a verb said where nobody listened: one of many answers, for whoever reports them all.
final class SessionRecord {
  /// The result, byte for byte.
  package fileprivate(set) var result: [UInt8] = []
  package fileprivate(set) var warnings: [Warning] = []

  /// Something that the user should know of, though the work went on.
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

/// What the backup that a verb is about says of itself, as far as it could be opened.
struct SubjectFacts: Equatable, Sendable {
  /// The identifier of the device that made it, as it claims.
  var identifier: String?
  /// The name that its owner gave the device; hostile.
  var deviceName: String?
  var date: KeychainDate?
  /// `nil` if nothing says it.
  var isEncrypted: Bool?
  /// "finished", "unfinished" or "damaged"; `nil` if nothing says it.
  var state: String?
  /// Of its manifest, its list of files and its keychain; `nil` if it was not opened.
  var digest: String?
  /// Whether it has a seal; `nil` if it was not opened.
  var hasSeal: Bool?
  /// Whether the backup is known to differ from its seal. Results with such a seal are never reused.
  var isSealBroken = false
  /// The code at the end of the seal, in hexadecimal; `nil` if there is no readable seal.
  var sealCode: String?

  init() {}
}
