import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Secrets")
struct SecretTests {
  private struct Refusal: Error, Equatable {}

  @Test("A secret passes its bytes to a closure, and returns the closure's result or rethrows its error")
  func lending() throws {
    let secret = Secret(copying: [1, 2, 3])
    #expect(secret.withBytes { $0.reduce(0, { $0 + Int($1) }) } == 6)
    #expect(throws: Refusal()) { try secret.withBytes { (_) throws(Refusal) in throw Refusal() } }
    let isEmpty = Secret.empty.isEmpty
    #expect(isEmpty)
  }

  @Test("A new secret is zeroed, and an error of its initializer is rethrown")
  func throwingInitializer() throws {
    var initialBytes: [UInt8] = [9]
    let error = #expect(throws: Refusal.self) {
      _ = try Secret(count: 4) { (buffer) throws(Refusal) in
        initialBytes = Array(buffer)
        buffer[0] = 0xFF
        throw Refusal()
      }
    }
    #expect(error == Refusal())
    #expect(initialBytes == [0, 0, 0, 0])
  }

  @Test("A secret matches equal bytes only")
  func matching() {
    let secret = Secret(copying: [1, 2, 3])
    for (bytes, expected) in [
      ([UInt8](), false), ([1, 2], false), ([1, 2, 3], true), ([1, 2, 4], false), ([1, 2, 3, 0], false),
    ] {
      let other = Secret(copying: bytes)
      let matches = secret.matches(other)
      #expect(matches == expected)
    }
    let emptySecretsMatch = Secret.empty.matches(Secret.empty)
    #expect(emptySecretsMatch)
  }

  @Test("A copy outlives the original secret")
  func copying() {
    func copyOfLocal() -> Secret { Secret(copying: [4, 5]).copy() }
    let copy = copyOfLocal()
    #expect(copy.revealed == [4, 5])
  }

  @Test("Text becomes UTF-8 without normalization or trimming")
  func text() {
    #expect(Secret(utf8: "e\u{301} \n").revealed == [0x65, 0xCC, 0x81, 0x20, 0x0A])
  }
}

@Suite("Random sources")
struct RandomnessTests {
  @Test("The seeded source gives the same stream in any chunks, and another stream for another seed")
  func seeded() throws {
    let atOnce = try SeededRandomSource(seed: "a").bytes(100)
    let source = SeededRandomSource(seed: "a")
    let parts = try [1, 31, 32, 33, 3].flatMap { try source.bytes($0) }
    #expect(parts == atOnce)
    #expect(try SeededRandomSource(seed: "b").bytes(100) != atOnce)
    let firstBlock = try Digest.sha256(Array("a".utf8) + [UInt8](repeating: 0, count: 8))
    #expect(Array(atOnce.prefix(32)) == firstBlock)
  }

  @Test("The system's source fills the buffer and does not repeat itself")
  func system() throws {
    let first = try SystemRandomSource().bytes(32)
    let second = try SystemRandomSource().bytes(32)
    #expect(first != second)
    // 32 random bytes practically never have so few different values.
    #expect(Set(first).count > 8)
    #expect(try SystemRandomSource().bytes(0).isEmpty)
  }

  private struct FailingSource: RandomSource {
    func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(DataProtectionError) {
      throw DataProtectionError(.randomFailed, "none today")
    }
  }

  @Test("No UID is created if the random source fails")
  func failingForUID() {
    let error = #expect(throws: DataProtectionError.self) {
      _ = try HardwareUID(from: FailingSource())
    }
    #expect(error?.code == .randomFailed)
  }

  @Test("No item is encrypted if the random source fails")
  func failingForItem() throws {
    let keys = try SyntheticBackup().unlock(withDeviceKey: false)
    let error = #expect(throws: ItemCryptoError.self) {
      _ = try keys.seal(SensitiveBytes(copying: [1]), keyClass: .whenUnlocked, as: .backup, random: FailingSource())
    }
    #expect(error?.fault == .failed(DataProtectionError(.randomFailed, "none today")))
  }
}

@Suite("Digests")
struct DigestTests {
  private let message = Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8)
  private let sha256 = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
  private let sha1 = "84983e441c3bd26ebaae4aa1f95129e5e54670f1"

  @Test("The examples of FIPS 180 are hashed in one call")
  func oneCall() throws {
    #expect(try Digest.sha256(message).hex == sha256)
    #expect(try Digest.sha1(message).hex == sha1)
    #expect(try Digest.sha1([]).hex == "da39a3ee5e6b4b0d3255bfef95601890afd80709")
  }

  @Test("The examples of FIPS 180 are hashed in two chunks")
  func chunks() throws {
    for chunkEnd in 0...message.count {
      let stream = try DigestStream(.sha256)
      try stream.update(Array(message[..<chunkEnd]))
      try stream.update(Array(message[chunkEnd...]))
      #expect(try stream.finish().hex == sha256)
    }
  }

  @Test("A stream hashes a second message after the first")
  func secondMessage() throws {
    for chunkEnd in 0...message.count {
      let stream = try DigestStream(.sha1)
      for _ in 0..<2 {
        try message[..<chunkEnd].withUnsafeBytes { try stream.update($0) }
        try message[chunkEnd...].withUnsafeBytes { try stream.update($0) }
        #expect(try stream.finish { Array($0) }.hex == sha1)
      }
    }
  }
}
