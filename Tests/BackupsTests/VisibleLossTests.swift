import Backups
import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Visible losses of backups")
struct VisibleLossTests {
  private static let keychainPath = "51/\(KeychainPayload.fileIdentifier)"

  /// Returns the losses of the sample backup after a change of its files.
  private func losses(
    hasPassword: Bool = true, _ change: (inout [(path: String, bytes: [UInt8])]) -> Void
  ) throws -> [String] {
    let sample = try SampleBackup(hasPassword: hasPassword)
    var files = try sample.storedFiles()
    change(&files)
    return try open(packed(files)).visibleDamage(with: sample.keys)
  }

  @Test("An unchanged backup has no losses", arguments: [true, false])
  func unchanged(hasPassword: Bool) throws {
    #expect(try losses(hasPassword: hasPassword) { _ in } == [])
  }

  @Test("An unreadable manifest is a loss")
  func unreadableManifest() throws {
    let result = try losses { $0["Manifest.db"] = [UInt8](repeating: 7, count: 4096) }
    #expect(result.count == 1 && result.first?.hasPrefix("its manifest cannot be read: ") == true)
  }

  @Test("A missing keychain file is reported as not stored and as unreadable")
  func missingKeychain() throws {
    let result = try losses { $0[Self.keychainPath] = nil }
    #expect(result.first == "1 listed file is not stored")
    #expect(result.last?.hasPrefix("its keychain cannot be read: the manifest lists ") == true && result.count == 2)
  }

  @Test("A changed keychain file is a loss")
  func changed() throws {
    let result = try losses(hasPassword: false) { files in
      // The data of the only item is in the middle.
      if let bytes = files[Self.keychainPath] { files[Self.keychainPath]?[bytes.count / 2] ^= 1 }
    }
    #expect(result == ["its keychain file differs from what was written"])
  }
}
