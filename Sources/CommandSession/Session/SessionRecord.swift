package import KeychainFormats

/// What a verb said where nobody listened: one of many answers, for whoever reports them all.
package final class SessionRecord {
  /// The result, byte for byte.
  package fileprivate(set) var result: [UInt8] = []
  package fileprivate(set) var warnings: [Warning] = []

  /// Something that the user should know of, though the work went on.
  package struct Warning: Equatable, Sendable {
    package let message: String
    package let why: String?
    package let advice: String?

    package init(_ message: String, why: String?, try advice: String?) {
      self.message = message
      self.why = why
      self.advice = advice
    }
  }

  package init() {}

  func add(_ bytes: some Collection<UInt8>) { result.append(contentsOf: bytes) }
  func add(_ warning: Warning) { warnings.append(warning) }
}

/// What the backup that a verb is about says of itself, as far as it could be opened.
package struct SubjectFacts: Equatable, Sendable {
  /// The identifier of the device that made it, as it claims.
  package var identifier: String?
  /// The name that its owner gave the device; hostile.
  package var deviceName: String?
  package var date: KeychainDate?
  /// `nil` where nothing says it.
  package var isEncrypted: Bool?
  /// "finished", "unfinished" or "damaged"; `nil` where nothing says it.
  package var state: String?
  /// Of its manifest, its list of files and its keychain; `nil` where it was not opened.
  package var digest: String?

  package init() {}
}
