import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Keys that the Secure Enclave wraps")
struct EnclaveKeyTests {
  /// The key 20…3F, wrapped by Python's `cryptography` package (RFC 3394). The wrapping key is the HMAC-SHA-256 of
  /// `secure enclave key 1 aku` with the UID 00…1F.
  private static let wrappedKey = "79d341d45595e998c63a4a271ea726d5a7e4e69d4e4a41f839368f1c339097305bb61dda042be32f"

  private static let uid: [UInt8] = Array(0..<32)

  private func chip(uid: [UInt8] = uid) throws -> HardwareUID { try HardwareUID(Secret(copying: uid)) }

  @Test("Wrapping a key gives the same bytes as another implementation")
  func knownAnswer() throws {
    let wrapped = try chip().wrapEnclaveKey(Secret(copying: Array(0x20..<0x40)), for: .whenUnlockedThisDeviceOnly)
    #expect(wrapped.hex == Self.wrappedKey)
    guard let unwrapped = try chip().unwrapEnclaveKey(wrapped, for: .whenUnlockedThisDeviceOnly) else {
      Issue.record("the key cannot be unwrapped")
      return
    }
    let bytes = unwrapped.withBytes { Array($0) }
    #expect(bytes == Array(0x20..<0x40))
  }

  private func canUnwrap(
    _ bytes: [UInt8], for protection: ProtectionClass = .whenUnlockedThisDeviceOnly, uid: [UInt8] = uid
  ) throws -> Bool {
    let unwrapped = try chip(uid: uid).unwrapEnclaveKey(bytes, for: protection)
    return unwrapped != nil
  }

  @Test("A wrapped key cannot be unwrapped by another chip or for another class")
  func otherChipOrClass() throws {
    let wrapped = try [UInt8](hex: Self.wrappedKey)
    #expect(try canUnwrap(wrapped))
    #expect(try !canUnwrap(wrapped, uid: Array(1..<33)))
    for protection in ProtectionClass.allCases where protection != .whenUnlockedThisDeviceOnly {
      #expect(try !canUnwrap(wrapped, for: protection))
    }
  }

  @Test("A wrapped key with a flipped bit or a changed length cannot be unwrapped")
  func changes() throws {
    let wrapped = try [UInt8](hex: Self.wrappedKey)
    for bit in 0..<wrapped.count * 8 {
      #expect(try !canUnwrap(wrapped.flipping(bit: bit)), "bit \(bit)")
    }
    for bytes in [[], Array(wrapped.dropLast()), wrapped + [0]] { #expect(try !canUnwrap(bytes)) }
  }

  @Test("A key of another length cannot be wrapped")
  func keySize() {
    #expect(throws: DataProtectionError.self) { try chip().wrapEnclaveKey(Secret(copying: [1]), for: .always) }
  }
}
