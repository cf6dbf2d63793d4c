import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@Suite("Keys that a chip wraps")
struct EnclaveKeyTests {
  /// By Python: HMAC-SHA-256 under the UID 00…1F over `secure enclave key 1 aku`, and RFC 3394 of `cryptography` under that
  /// over 20…3F.
  private static let wrapped = "79d341d45595e998c63a4a271ea726d5a7e4e69d4e4a41f839368f1c339097305bb61dda042be32f"

  private func chip() throws -> HardwareUID { try HardwareUID(Secret(copying: Array(0..<32))) }

  @Test("are wrapped as a second implementation wraps them")
  func known() throws {
    let wrapped = try chip().wrapEnclaveKey(Secret(copying: Array(0x20..<0x40)), for: .whenUnlockedThisDeviceOnly)
    #expect(wrapped.hex == Self.wrapped)
    guard let number = try chip().unwrapEnclaveKey(wrapped, for: .whenUnlockedThisDeviceOnly) else {
      Issue.record("it does not open")
      return
    }
    let bytes = number.withBytes { Array($0) }
    #expect(bytes == Array(0x20..<0x40))
  }

  @Test("open for no other chip or class, and not with a bit changed or a byte more or less")
  func bound() throws {
    let wrapped = try [UInt8](hex: Self.wrapped)
    func opens(_ bytes: [UInt8], _ protection: ProtectionClass = .whenUnlockedThisDeviceOnly) throws -> Bool {
      let opened = try chip().unwrapEnclaveKey(bytes, for: protection)
      return opened != nil
    }
    #expect(try opens(wrapped))
    for protection in ProtectionClass.allCases where protection != .whenUnlockedThisDeviceOnly {
      #expect(try !opens(wrapped, protection))
    }
    for bit in 0..<320 {
      var changed = wrapped
      changed[bit / 8] ^= 1 << (bit % 8)
      #expect(try !opens(changed), "bit \(bit)")
    }
    for bytes in [[], Array(wrapped.dropLast()), wrapped + [0]] { #expect(try !opens(bytes)) }
    let other = try HardwareUID(Secret(copying: Array(1..<33)))
    let opened = try other.unwrapEnclaveKey(wrapped, for: .whenUnlockedThisDeviceOnly)
    let isOpen = opened != nil
    #expect(!isOpen)
    #expect(throws: DataProtectionError.self) { try chip().wrapEnclaveKey(Secret(copying: [1]), for: .always) }
  }
}
