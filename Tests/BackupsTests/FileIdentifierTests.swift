import Basics
import TestSupport
import Testing

@testable import Backups

@Suite("The name under which a file is stored")
struct FileIdentifierTests {
  @Test("is SHA-1 of domain and path: the published file_id vectors")
  func publishedIdentifiers() throws {
    let vectors = try TestVectors.list("file_id")
    #expect(vectors.count == 2)
    for vector in vectors {
      let identifier = try ListedFile.fileIdentifier(
        domain: vector["domain"].string, relativePath: vector["relativePath"].string)
      #expect(try identifier == vector["fileID"].string)
    }
  }

  @Test("of the keychain is the constant that finds it without its list")
  func keychain() throws {
    #expect(
      try ListedFile.fileIdentifier(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath)
        == KeychainPayload.fileIdentifier)
  }
}
