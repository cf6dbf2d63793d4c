import Basics
import Testing

@testable import KeychainFormats

@Suite("CryptoKit keys of the Secure Enclave in passwords")
struct SecureEnclaveKeyBlobTests {
  /// A value like the published value, with members of the same names, types and lengths, but artificial bytes: an
  /// OCTET STRING with the dictionary `{ed: {acl: {dacl: true}}, rk: {bc: 10, bid: …, …, wk: …}}`.
  private static let valid: [UInt8] = {
    func data(_ count: Int, startingWith firstByte: UInt8) -> [UInt8] {
      element(0x04, [firstByte] + [UInt8](repeating: 0x5A, count: count - 1))
    }
    let key =
      member("bc", element(0x02, [0x0A])) + member("bid", data(4, startingWith: 1))
      + member("kid", data(16, startingWith: 2))
      + member("kt", element(0x02, [4])) + member("kv", element(0x02, [1])) + member("pub", data(65, startingWith: 4))
      + member("rkm", data(32, startingWith: 3)) + member("rko", data(8, startingWith: 0x80))
      + member("wk", data(40, startingWith: 5))
    let access = member("acl", element(0x31, member("dacl", element(0x01, [1]))))
    return element(0x04, element(0x31, member("ed", element(0x31, access)) + member("rk", element(0x31, key))))
  }()

  private static func element(_ tag: UInt8, _ contents: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    DEREncoder.appendElement(tag, contents, to: &bytes)
    return bytes
  }

  private static func member(_ key: String, _ value: [UInt8]) -> [UInt8] {
    element(0x30, element(0x0C, Array(key.utf8)) + value)
  }

  private func item(_ secret: [UInt8]?, _ kind: ItemKind = .genericPassword) -> KeychainItem {
    var item = KeychainItem(kind: kind)
    item.secret = secret.map { SensitiveBytes(copying: $0) }
    return item
  }

  @Test("A Secure Enclave key is recognized by its format in both kinds of password")
  func recognized() {
    // The sizes of the published value: 0x11F bytes in the OCTET STRING, 0x11B in the dictionary.
    #expect(Self.valid.count == 291 && Self.valid.prefix(8) == [0x04, 0x82, 0x01, 0x1F, 0x31, 0x82, 0x01, 0x1B])
    #expect(item(Self.valid).containsSecureEnclaveKey)
    #expect(item(Self.valid, .internetPassword).containsSecureEnclaveKey)
    // Key items refer to a token instead, and a certificate is public.
    #expect(
      !item(Self.valid, .key).containsSecureEnclaveKey && !item(Self.valid, .certificate).containsSecureEnclaveKey)
  }

  @Test("A password, an empty or missing value, and DER without the members of a key are not recognized as a key")
  func others() {
    #expect(!item(Array("hunter2".utf8)).containsSecureEnclaveKey)
    #expect(!item([]).containsSecureEnclaveKey && !item(nil).containsSecureEnclaveKey)
    #expect(!item([0x04, 0x02, 0x31, 0x00]).containsSecureEnclaveKey)
    #expect(!item([0x31, 0x00]).containsSecureEnclaveKey)
  }

  @Test("A key is recognized only with all of its members", arguments: ["ed", "acl", "rk", "bid", "kid", "pub", "rkm"])
  func names(_ name: String) throws {
    var bytes = Self.valid
    let encodedName = [0x0C, UInt8(name.utf8.count)] + Array(name.utf8)
    let offset = try #require(bytes.indices.first { bytes[$0...].starts(with: encodedName) })
    bytes[offset + 2] = UInt8(ascii: "z")
    #expect(!item(bytes).containsSecureEnclaveKey)
  }

  @Test("A truncated key, or a key with an extra byte, is not recognized")
  func cut() {
    let valid = Self.valid
    for count in 0..<valid.count { #expect(!item(Array(valid.prefix(count))).containsSecureEnclaveKey) }
    #expect(!item(valid + [0]).containsSecureEnclaveKey)
  }

  @Test("A key with a duplicate member, another public key format or deep nesting is not recognized")
  func strict() {
    func blob(publicKey: [UInt8], otherMembers: [UInt8] = []) -> [UInt8] {
      let identifiers = ["bid", "kid", "rkm"].flatMap { Self.member($0, Self.element(0x04, [1])) }
      let key = identifiers + Self.member("pub", Self.element(0x04, publicKey)) + otherMembers
      let access = Self.member("ed", Self.element(0x31, Self.member("acl", Self.element(0x31, []))))
      return Self.element(0x04, Self.element(0x31, access + Self.member("rk", Self.element(0x31, key))))
    }
    let point = [0x04] + [UInt8](repeating: 7, count: 64)
    #expect(item(blob(publicKey: point)).containsSecureEnclaveKey)
    #expect(
      item(blob(publicKey: point, otherMembers: Self.member("zz", Self.element(0x0C, [])))).containsSecureEnclaveKey)
    #expect(
      !item(blob(publicKey: point, otherMembers: Self.member("bid", Self.element(0x04, [2])))).containsSecureEnclaveKey)
    #expect(!item(blob(publicKey: Array(point.dropLast()))).containsSecureEnclaveKey)
    #expect(!item(blob(publicKey: [0x02] + point.dropFirst())).containsSecureEnclaveKey)
    var nested: [UInt8] = Self.element(0x31, [])
    for _ in 0..<40 { nested = Self.element(0x31, Self.member("a", nested)) }
    #expect(!item(blob(publicKey: point, otherMembers: Self.member("deep", nested))).containsSecureEnclaveKey)
    #expect(!item([UInt8](repeating: 0x31, count: SecureEnclaveKeyBlob.maximumByteCount + 1)).containsSecureEnclaveKey)
  }
}
