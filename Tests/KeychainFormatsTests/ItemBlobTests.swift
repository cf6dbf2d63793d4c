import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Item blobs")
struct ItemBlobTests {
  @Test("item_blob_v2: the real iOS 5 item has class 11, a wrapped key of 40 bytes and no fixed IV")
  func realVersion2() throws {
    let bytes = try TestVectors.section("item_blob_v2")["blob"].bytes
    let blob = try ItemBlob(parsing: bytes)
    #expect(blob.version == .v2)
    #expect(!blob.hasStaticIV)
    #expect(blob.keyClass == .alwaysThisDeviceOnly)
    #expect(blob.wrappedKey.count == 40)
    #expect(blob.ciphertext.count == bytes.count - 12 - 40 - 16)
    #expect(blob.tag == Array(bytes.suffix(16)))
    #expect(blob.serialized() == bytes)
  }

  @Test("synthetic_backup: every item blob survives a round trip byte for byte")
  func synthetic() throws {
    let backup = try TestVectors.section("synthetic_backup")
    for vector in try backup["items"].elements {
      let bytes = try vector["v_Data_hex"].bytes
      let blob = try ItemBlob(parsing: bytes)
      #expect(blob.version == .v3)
      #expect(blob.keyClass.rawValue == UInt32(try vector["class_"].integer))
      #expect(blob.hasStaticIV == (try vector["static_iv"].boolean))
      #expect(blob.authenticatedHeader == Array(bytes.prefix(12)))
      #expect(blob.ciphertext.count == (try vector["plaintext_der_hex"].bytes.count))
      #expect(blob.serialized() == bytes)
    }
    let asymmetric = try backup["asym"]["v_Data_hex"].bytes
    #expect(try ItemBlob(parsing: asymmetric).wrappedKey.count == 72)
    #expect(try ItemBlob(parsing: asymmetric).serialized() == asymmetric)
  }
}
