import Basics
import KeychainFormats
import Testing

@testable import KeychainCrypto

@Suite("Texts of errors")
struct ErrorTextTests {
  private static let codes: [DataProtectionError.Code] = [
    .wrongPassword, .wrongPasscode, .roundsOverLimit, .cancelled, .damagedKeybag, .hardwareLayerMissing, .missingField,
    .unsupported, .keyUnavailable, .keyUnwrapFailed, .malformed, .randomFailed, .cryptoFailed,
  ]

  private static let faults: [ItemFault] = [
    .noClassKey, .locked, .deviceBound, .classKeyDamaged, .keyUnwrapFailed, .tagMismatch, .unsupportedVersion(9),
    .malformed(FormatError(.itemBlob, .truncated, "the tag does not fit")),
    .failed(DataProtectionError(.cryptoFailed, "OpenSSL refused HMAC")),
  ]

  @Test("Error texts are in lower case, without a full stop, and fit in a line")
  func shape() {
    let errors: [any ExplainedError] =
      Self.codes.map { DataProtectionError($0, "a fact") }
      + Self.faults.map { ItemCryptoError($0, keyClass: .whenUnlocked) }
    for error in errors {
      for text in [error.summary, error.reason, error.advice] {
        #expect(!text.isEmpty)
        #expect(!text.hasSuffix("."))
        #expect(text.count <= 100, "\(text)")
        #expect(text.first?.isUppercase == false || text.hasPrefix("OpenSSL"))
      }
    }
  }

  @Test("Errors have the categories that programs expect")
  func categories() {
    func category(_ code: DataProtectionError.Code) -> ErrorCategory { DataProtectionError(code, "").category }
    #expect(category(.wrongPassword) == .wrongPassword)
    #expect(category(.wrongPasscode) == .wrongPassword)
    #expect(category(.roundsOverLimit) == .refused)
    #expect(category(.damagedKeybag) == .damaged)
    #expect(category(.cancelled) == .failed)
    #expect(ItemCryptoError(.locked).category == .locked)
    #expect(ItemCryptoError(.deviceBound).category == .failed)
    #expect(ItemCryptoError(.tagMismatch).category == .damaged)
    #expect(ItemCryptoError(.unsupportedVersion(7)).category == .refused)
  }

  @Test("The reason of an item's error contains its class")
  func naming() {
    #expect(
      ItemCryptoError(.keyUnwrapFailed, keyClass: .whenUnlocked).reason
        == "the key of class 6 does not unwrap the item's key")
    #expect(ItemCryptoError(.noClassKey).reason == "the keybag has no key of its class")
  }

  @Test(
    "Large numbers have thousands separators",
    arguments: [
      (0, "0"), (999, "999"), (1000, "1,000"), (20_000_000, "20,000,000"), (-1, "-1"), (-1000, "-1,000"),
      (-100, "-100"),
    ])
  func grouping(number: Int, text: String) {
    #expect(HumanReadable.grouped(number) == text)
  }
}
