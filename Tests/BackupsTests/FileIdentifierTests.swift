import Basics
import TestSupport
import Testing

@testable import Backups

@Suite("Stored names of files")
struct FileIdentifierTests {
  @Test("A stored name is the SHA-1 digest of the domain and path, as in the published vectors")
  func publishedIdentifiers() throws {
    let vectors = try TestVectors.list("file_id")
    #expect(vectors.count == 2)
    for vector in vectors {
      let identifier = try ListedFile.fileIdentifier(
        domain: vector["domain"].string, relativePath: vector["relativePath"].string)
      #expect(try identifier == vector["fileID"].string)
    }
  }

  @Test("The stored name of the keychain file is the constant")
  func keychain() throws {
    #expect(
      try ListedFile.fileIdentifier(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
        == KeychainPayload.fileIdentifier)
  }
}
