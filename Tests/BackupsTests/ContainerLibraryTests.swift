import Basics
import CArchive
import SystemPackage
import Testing

@testable import Backups

@Suite("Loading of libarchive")
struct ContainerLibraryTests {
  @Test("The loaded libarchive has the major version of its header")
  func present() throws {
    #expect(keyhaul_archive_absence() == nil)
    #expect(try #require(ContainerLibrary.version).hasPrefix("\(ARCHIVE_VERSION_NUMBER / 1_000_000)."))
  }

  #if os(Linux)
    private func absence(in library: String) -> String? {
      keyhaul_archive_absence_in(library).map { String(cString: $0) }
    }

    @Test("The error for a missing or incomplete libarchive has the reason")
    func absent() throws {
      #expect(absence(in: "libarchive.so.13") == nil)
      let missing = try #require(absence(in: "libkeyhaul-none.so.1"))
      #expect(missing.hasPrefix("libkeyhaul-none.so.1: "))
      let unrelated = try #require(absence(in: "libsqlite3.so.0"))
      #expect(unrelated.contains("undefined symbol: archive_version_number"))
    }
  #endif

  @Test("A failure of an existing libarchive is reported as a lack of memory for reading and writing")
  func noMemory() {
    #expect(ContainerLibrary.readFailure == KeyhaulError(.unreadable, "out of memory", errno: .noMemory))
    #expect(ContainerLibrary.writeFailure == .writing("out of memory", .noMemory))
  }
}
