import Backups
import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

/// The name of a directory in a container, and its encoding.
struct NamedContainer: Sendable, CustomTestStringConvertible {
  enum Format: String, CaseIterable, Sendable {
    case ustar, pax, zip, zipWithUTF8Flag
  }

  let format: Format
  let name: [UInt8]
  /// The locale of the thread, which stands for the process's locale.
  let locale: String

  var testDescription: String { "\(format.rawValue), \(name.hex), \(locale)" }

  static let names: [[UInt8]] = [
    Array("Gr\u{F6}\u{DF}e".utf8), Array("Gro\u{308}\u{DF}e".utf8), Array("\u{1F4F1}".utf8),
    // Latin-1, and code page 437.
    [0x47, 0x72, 0xF6, 0xDF, 0x65], [0x47, 0x72, 0x94, 0xE1, 0x65],
  ]

  static let all: [NamedContainer] = Format.allCases.flatMap { format in
    names.flatMap { name in ["C", "C.UTF-8"].map { NamedContainer(format: format, name: name, locale: $0) } }
  }

  /// Packs files in a directory with the name.
  func bytes(_ files: [(path: String, bytes: [UInt8])]) -> [UInt8] {
    var (tar, zip) = (TarFixture(), ZipFixture())
    for file in files {
      let path = name + Array("/\(file.path)".utf8)
      switch format {
      case .ustar: tar.add(nameBytes: path, file.bytes)
      case .pax:
        tar.addExtended([("path", path)])
        tar.add("x", file.bytes)
      case .zip: zip.add(nameBytes: path, file.bytes)
      case .zipWithUTF8Flag: zip.add(nameBytes: path, file.bytes, flags: 0x800)
      }
    }
    return format == .ustar || format == .pax ? tar.finished() : zip.finished()
  }
}

/// Runs a closure with another locale on this thread.
private func withLocale<Value>(_ name: String, _ body: () throws -> Value) rethrows -> Value {
  #if canImport(Glibc)
    let former = uselocale(newlocale(Int32(1) << LC_CTYPE, name, nil))
    defer { _ = uselocale(former) }
  #endif
  return try body()
}

@Suite("Containers with non-ASCII names")
struct EntryNameTests {
  private func occurrenceCount(of name: [UInt8], in bytes: Data) -> Int {
    var count = 0
    var start = bytes.startIndex
    while let match = bytes.range(of: Data(name), in: start..<bytes.endIndex) {
      count += 1
      start = match.upperBound
    }
    return count
  }

  @Test(
    "A backup in a directory with a non-ASCII name opens, and changing the password preserves the name",
    arguments: NamedContainer.all)
  func rekeyed(container: NamedContainer) throws {
    let sample = try SampleBackup()
    let files = try SampleBackup.storedFiles()
    let directory = try TemporaryDirectory()
    try directory.write(container.bytes(files), to: "b")
    try withLocale(container.locale) {
      let archive = try BackupArchive.open(.path(directory.path("b")))
      let keybag = try BackupKeybag.rewrap(
        archive.keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: "battery staple"))
      try BackupRewriter(system: unsynced).replaceKeybag(of: archive, at: directory.path("b"), with: keybag)
      let rekeyed = try BackupArchive.open(.path(directory.path("b")))
      #expect(rekeyed.keybag == keybag)
      #expect(try rekeyed.keychainFile(with: sample.keys).bytes == sample.contents.keychainFile)
    }
    let written = Data(try directory.read("b"))
    // A zip contains each name in the local header and the central directory.
    let isZip = written.starts(with: Array("PK".utf8))
    for path in files.map(\.path) {
      let name = container.name + Array("/\(path)".utf8)
      #expect(occurrenceCount(of: name, in: written) >= (isZip ? 2 : 1), "\(path)")
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["b"])
  }

  @Test("A backup in a directory with a non-ASCII name can be converted to any format", arguments: NamedContainer.all)
  func converted(container: NamedContainer) throws {
    let directory = try TemporaryDirectory()
    try directory.write(container.bytes(try SampleBackup.storedFiles()), to: "b")
    try withLocale(container.locale) {
      let archive = try BackupArchive.open(.path(directory.path("b")))
      for destination in ["c/", "c.tar", "c.zip"] {
        _ = try BackupRewriter(system: unsynced).convert(
          archive, at: directory.path("b"), to: BackupDestination(path: directory.path(destination)))
        #expect(try BackupArchive.open(.path(directory.path(destination))).digest == archive.digest)
      }
    }
  }

  @Test("An unrelated file with a non-ASCII name is displayed with escapes and is not part of the backup")
  func unrelated() throws {
    let sample = try SampleBackup()
    let directory = try TemporaryDirectory()
    var tar = TarFixture()
    for file in try sample.storedFiles() { tar.add(file.path, file.bytes) }
    let latin1Name = Array("f".utf8) + [0xF6] + Array(".txt".utf8)
    tar.add(nameBytes: latin1Name, [1])
    try directory.write(tar.finished(), to: "b.tar")
    let archive = try BackupArchive.open(.path(directory.path("b.tar")))
    let outcome = try BackupRewriter(system: unsynced).convert(
      archive, at: directory.path("b.tar"), to: BackupDestination(path: directory.path("c.tar")))
    #expect(outcome.unrelatedFiles == ["f\\xF6.txt"])
  }

  @Test("Names are compared as bytes, so that another Unicode normalization is another directory")
  func normalizations() throws {
    let sample = try SampleBackup()
    var tar = TarFixture()
    for (index, file) in try sample.storedFiles().enumerated() {
      // Only the first file, Manifest.plist, has the composed directory name.
      tar.add((index == 0 ? "caf\u{E9}/" : "cafe\u{301}/") + file.path, file.bytes)
    }
    #expect(try failure(opening: tar.finished())?.code == .payloadMissing)
  }

  @Test("Entries of a zip larger than 4 GB, with 64-bit offsets, are found")
  func offsetsOf64Bits() throws {
    // Small zips have 32-bit offsets in the headers. Here, the extra fields have 64-bit offsets.
    let sample = try SampleBackup()
    var zip = ZipFixture()
    let name = Array("Gro\u{308}\u{DF}e".utf8)
    for file in try sample.storedFiles() {
      zip.add(nameBytes: name + Array("/\(file.path)".utf8), file.bytes, flags: 0x800, hasZip64Offset: true)
    }
    let directory = try TemporaryDirectory()
    try directory.write(zip.finished(), to: "b.zip")
    let archive = try BackupArchive.open(.path(directory.path("b.zip")))
    let keybag = try BackupKeybag.rewrap(
      archive.keybag, from: Secret(utf8: SampleBackup.password), to: Secret(utf8: "battery staple"))
    try BackupRewriter(system: unsynced).replaceKeybag(of: archive, at: directory.path("b.zip"), with: keybag)
    let manifestName = name + Array("/Manifest.plist".utf8)
    #expect(occurrenceCount(of: manifestName, in: Data(try directory.read("b.zip"))) == 2)
  }
}
