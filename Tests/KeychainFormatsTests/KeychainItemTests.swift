import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Decrypted items")
struct KeychainItemTests {
  @Test(
    "synthetic_backup: every plaintext survives a round trip byte for byte, with its secret separate from its attributes"
  )
  func plaintexts() throws {
    for vector in try TestVectors.section("synthetic_backup")["items"].elements {
      let bytes = try vector["plaintext_der_hex"].bytes
      let kind = try #require(ItemKind(rawValue: vector["table"].string))
      let item = try KeychainItem(derDictionary: SensitiveBytes(copying: bytes), kind: kind)
      #expect(item.secret != nil)
      #expect(item[.valueData] == nil)
      #expect(try item.derDictionary().withBytes { Array($0) } == bytes)
    }
  }

  @Test("synthetic_backup: the SHA-1 of the digest encoding equals the item's sha1")
  func digests() throws {
    for vector in try TestVectors.section("synthetic_backup")["items"].elements {
      let kind = try #require(ItemKind(rawValue: vector["table"].string))
      let item = try KeychainItem(derDictionary: SensitiveBytes(copying: vector["plaintext_der_hex"].bytes), kind: kind)
      #expect(SHA1.hash(try item.digestEncoding().withBytes { Array($0) }) == item[.digest]?.dataValue)
    }
  }

  @Test("primary_key_uuid: the primary-key dictionary has Apple's bytes and digest")
  func primaryKeys() throws {
    for vector in try TestVectors.list("primary_key_uuid") {
      var item = KeychainItem(kind: .genericPassword)
      item[.account] = .string(try vector["acct"].string)
      item[.service] = .string(try vector["svce"].string)
      item[.accessGroup] = .string(try vector["agrp"].string)
      item[.synchronizable] = .integer(Int64(try vector["sync"].integer))
      item[.syncViewHint] = .string(try vector["vwht"].string)
      let encoding = try item.primaryKeyEncoding()
      #expect(encoding.hex == (try vector["der"].string))
      #expect(SHA1.hash(encoding).hex == (try vector["sha1"].string))
    }
  }

  @Test("An item without attributes has the primary key of its defaults: empty data, empty text, zero")
  func primaryKeyDefaults() throws {
    let encoding = try KeychainItem(kind: .genericPassword).primaryKeyEncoding()
    let pairs = ["30080c04616363740400", "30080c04616772700c00", "30080c046d7573720400", "30080c04737663650400"]
    #expect(encoding.hex == "3133" + pairs.joined() + "30090c0473796e63020100")
  }
}
