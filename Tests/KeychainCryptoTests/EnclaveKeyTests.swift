import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Keys that the Secure Enclave wraps")
struct EnclaveKeyTests {
  /// The key 20…3F, wrapped by Python's `cryptography` package (RFC 3394). The wrapping key is the HMAC-SHA-256 of
  /// `secure enclave key 1 aku` with the UID 00…1F.
  private static let wrapped = "79d341d45595e998c63a4a271ea726d5a7e4e69d4e4a41f839368f1c339097305bb61dda042be32f"

  private func chip() throws -> HardwareUID { try HardwareUID(Secret(copying: Array(0..<32))) }

  @Test("Wrapping a key gives the bytes that another implementation gives")
  func knownAnswer() throws {
    let wrapped = try chip().wrapEnclaveKey(Secret(copying: Array(0x20..<0x40)), for: .whenUnlockedThisDeviceOnly)
    #expect(wrapped.hex == Self.wrapped)
    guard let unwrapped = try chip().unwrapEnclaveKey(wrapped, for: .whenUnlockedThisDeviceOnly) else {
      Issue.record("the key cannot be unwrapped")
      return
    }
    let bytes = unwrapped.withBytes { Array($0) }
    #expect(bytes == Array(0x20..<0x40))
  }

  @Test("A wrapped key cannot be unwrapped by another chip, for another class, or after a change")
  func bound() throws {
    let wrapped = try [UInt8](hex: Self.wrapped)
    func canUnwrap(_ bytes: [UInt8], _ protection: ProtectionClass = .whenUnlockedThisDeviceOnly) throws -> Bool {
      let opened = try chip().unwrapEnclaveKey(bytes, for: protection)
      return opened != nil
    }
    #expect(try canUnwrap(wrapped))
    for protection in ProtectionClass.allCases where protection != .whenUnlockedThisDeviceOnly {
      #expect(try !canUnwrap(wrapped, protection))
    }
    for bit in 0..<320 {
      var changed = wrapped
      changed[bit / 8] ^= 1 << (bit % 8)
      #expect(try !canUnwrap(changed), "bit \(bit)")
    }
    for bytes in [[], Array(wrapped.dropLast()), wrapped + [0]] { #expect(try !canUnwrap(bytes)) }
    let other = try HardwareUID(Secret(copying: Array(1..<33)))
    let opened = try other.unwrapEnclaveKey(wrapped, for: .whenUnlockedThisDeviceOnly)
    let isOpen = opened != nil
    #expect(!isOpen)
    #expect(throws: DataProtectionError.self) { try chip().wrapEnclaveKey(Secret(copying: [1]), for: .always) }
  }
}
