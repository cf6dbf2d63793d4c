import Backups
import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("What a backup has visibly lost")
struct LossTests {
  private static let keychain = "51/\(KeychainPayload.fileIdentifier)"

  private func losses(
    hasPassword: Bool = true, _ change: (inout [(path: String, bytes: [UInt8])]) -> Void
  ) throws -> [String] {
    let sample = try SampleBackup(hasPassword: hasPassword)
    var files = try sample.storedFiles()
    change(&files)
    return try open(packed(files)).visibleLosses(with: sample.keys)
  }

  @Test("is nothing where it is as it was written", arguments: [true, false])
  func nothing(hasPassword: Bool) throws {
    #expect(try losses(hasPassword: hasPassword) { _ in } == [])
  }

  @Test("is a manifest that does not open")
  func list() throws {
    let found = try losses { $0["Manifest.db"] = [UInt8](repeating: 7, count: 4096) }
    #expect(found.count == 1 && found.first?.hasPrefix("its manifest cannot be read: ") == true)
  }

  @Test("is a file that is listed and not stored, and a keychain that cannot be had")
  func missing() throws {
    let found = try losses { $0[Self.keychain] = nil }
    #expect(found.first == "1 listed file is not stored")
    #expect(found.last?.hasPrefix("its keychain cannot be read: the manifest lists ") == true && found.count == 2)
  }

  @Test("is a keychain file that is not what was written")
  func changed() throws {
    let found = try losses(hasPassword: false) { files in
      // In the middle lies the one item's blob.
      if let bytes = files[Self.keychain] { files[Self.keychain]?[bytes.count / 2] ^= 1 }
    }
    #expect(found == ["its keychain file differs from what was written"])
  }
}
