import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import TestSupport
import Testing

@testable import Backups

@Suite("Extraction of files to a folder")
struct ExtractionTests {
  static let files: [FileTreeBackup.File] = [
    .init(path: "Library", mode: 0o755, modified: 1_500_000_000),
    .init(path: "Library/notes.txt", content: Array("milk".utf8), mode: 0o640, modified: 1_400_000_000),
    .init(path: "Library/read-only", content: Array("kept".utf8), mode: 0o400),
    .init(path: "Library/empty", content: []),
    .init(path: "top.bin", content: (0..<300_001).map { UInt8(65 + $0 % 26) }),
    .link("Library/link", to: "notes.txt"),
    .text("Documents/chat.txt", "hello", in: "AppDomain-org.example.chat"),
  ]

  /// Extracts all or the selected files to `out`.
  @discardableResult
  static func extract(
    _ backup: FileTreeBackup, _ directory: TemporaryDirectory, from name: String = "backup", to out: String = "out",
    system: FileSystem = unsynced, selection: String = "all",
    progress: BackupRewriter.Progress = { _, _ in true }, choosing: (ListedFile) -> Bool = { _ in true },
    startThread: @escaping SecureThread.Starter = SecureThread.start
  ) throws -> ExtractedFiles {
    let archive = try BackupArchive.open(.path(directory.path(name)))
    let fileList = try fileList(of: archive, backup)
    let plan = try ExtractionPlan(of: fileList, stored: archive.storedFiles(), selecting: choosing)
    return try FileExtractor(system: system, startThread: startThread).extract(
      .init(plan, selection: selection, into: directory.path(out)), from: archive, list: fileList,
      keys: backup.unlocked(),
      progress: progress)
  }

  private static func fileList(of archive: BackupArchive, _ backup: FileTreeBackup) throws -> FileList {
    guard archive.isListEncrypted, let keys = try backup.unlocked() else { return try archive.fileList() }
    return try archive.fileList(with: keys)
  }

  private static let expected = [
    "HomeDomain": "directory 700", "HomeDomain/Library": "directory 755",
    "HomeDomain/Library/notes.txt": "file 640 1400000000 milk",
    "HomeDomain/Library/read-only": "file 400 1600000000 kept", "HomeDomain/Library/empty": "file 644 1600000000 ",
    "HomeDomain/Library/link": "link notes.txt",
    "HomeDomain/top.bin": "file 644 1600000000 "
      + String(decoding: (0..<300_001).map { UInt8(65 + $0 % 26) }, as: UTF8.self),
    "AppDomain-org.example.chat": "directory 700", "AppDomain-org.example.chat/Documents": "directory 700",
    "AppDomain-org.example.chat/Documents/chat.txt": "file 644 1600000000 hello",
  ]

  @Test(
    "Extracted files are in the tree of their domains and paths, with their times and modes", arguments: [true, false])
  func wholeTree(isEncrypted: Bool) throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files, isEncrypted: isEncrypted)
    try backup.write(to: directory)
    let result = try Self.extract(backup, directory)
    #expect(try entries(in: directory, "out") == Self.expected)
    #expect(result.fileCount == 5 && result.linkCount == 1 && result.keptCount == 0 && result.isComplete)
    #expect(result.byteCount == 300_014 && result.directoryCount == 4 && result.renamedCount == 0)
    #expect(result.digests == [.matches: 5])
    let attributes = try FileManager.default.attributesOfItem(atPath: directory.path("out/HomeDomain/Library"))
    #expect((attributes[.modificationDate] as? Date)?.timeIntervalSince1970 == 1_500_000_000)
    let link = try FileManager.default.attributesOfItem(atPath: directory.path("out/HomeDomain/Library/link"))
    #expect((link[.modificationDate] as? Date)?.timeIntervalSince1970 == 1_600_000_000)
    for name in ["out", "out/keyhaul-files.jsonl"] {
      let mode = try FileManager.default.attributesOfItem(atPath: directory.path(name))[.posixPermissions] as? Int
      #expect(mode == (name == "out" ? 0o700 : 0o600), "only the owner can access \(name)")
    }
  }

  @Test("All files are extracted if the system refuses every thread, or all but the first", arguments: [0, 1])
  func refusedThreads(allowed: Int) throws {
    let directory = try TemporaryDirectory()
    let moreFiles = (0..<1_500).map { number in
      FileTreeBackup.File(path: "Library/\(number)", content: Array("file \(number)".utf8))
    }
    let backup = try FileTreeBackup(Self.files + moreFiles, isEncrypted: false)
    try backup.write(to: directory)
    let requestCount = Locked(0)
    var reportCount = 0
    let result = try Self.extract(
      backup, directory,
      progress: { _, _ in
        reportCount += 1
        return true
      },
      startThread: { work, ended in
        let requestNumber = requestCount.withLock {
          $0 += 1
          return $0
        }
        return requestNumber <= allowed && SecureThread.start(work, ended: ended)
      })
    #expect(result.fileCount == 1_505 && result.isComplete)
    #expect(reportCount > 0)
    #expect(try entries(in: directory, "out")["HomeDomain/Library/1499"]?.hasSuffix("file 1499") == true)
  }

  @Test("An extraction on its caller's thread can be interrupted")
  func refusedThreadsInterrupted() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files, isEncrypted: false)
    try backup.write(to: directory)
    let error = #expect(throws: KeyhaulError.self) {
      let refusing: SecureThread.Starter = { (_, _) in false }
      return try Self.extract(backup, directory, progress: { _, _ in false }, startThread: refusing)
    }
    #expect(error?.code == .interrupted)
  }

  @Test(
    "A container and its folder have the same result when they are extracted",
    arguments: ["b.tar", "b.tar.zst", "b.zip"])
  func containers(container: String) throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files)
    try backup.write(to: directory)
    let archive = try BackupArchive.open(.path(directory.path("backup")))
    _ = try BackupRewriter(system: unsynced).convert(
      archive, at: directory.path("backup"), to: BackupDestination(path: directory.path(container)))
    let result = try Self.extract(backup, directory, from: container)
    #expect(try entries(in: directory, "out") == Self.expected)
    #expect(result.fileCount == 5 && result.isComplete)
  }

  @Test("The file keyhaul-files.jsonl lists all extracted files in the order of the backup's manifest")
  func manifest() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files)
    try backup.write(to: directory)
    try Self.extract(backup, directory)
    let lines = try String(decoding: directory.read("out/keyhaul-files.jsonl"), as: UTF8.self)
      .split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)) }
    #expect(lines.first?["format"]?.stringValue == "exported-files/1")
    #expect(
      lines.dropFirst().map { $0["relative_path"]?.stringValue } == [
        "Library/notes.txt", "Library/read-only", "Library/empty", "top.bin", "Library/link", "Documents/chat.txt",
      ])
    let notes = lines[1]
    #expect(
      notes["path"]?.stringValue == "HomeDomain/Library/notes.txt" && notes["domain"]?.stringValue == "HomeDomain")
    #expect(notes["size"]?.integerValue == 4 && notes["protection_class"]?.integerValue == 3)
    // The result of `printf milk | sha256sum`.
    #expect(
      notes["sha256"]?.stringValue == "8825e76530f87ff5c737b3254c6936bc0a90bba3a10a91bbba739268208d378a")
    #expect(notes["mode"]?.stringValue == "640" && notes["modified"]?.stringValue == "2014-05-13T16:53:20Z")
    #expect(notes["digest"]?.stringValue == "right")
  }

  @Test("A repeated extraction writes only changed and missing files")
  func repeated() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files)
    try backup.write(to: directory)
    try Self.extract(backup, directory)
    func fileNumber(of path: String) throws -> Int? {
      try FileManager.default.attributesOfItem(atPath: directory.path("out/\(path)"))[.systemFileNumber] as? Int
    }
    let fileNumberBefore = try fileNumber(of: "HomeDomain/top.bin")
    try directory.write(Array("silk".utf8), to: "out/HomeDomain/Library/notes.txt")
    try FileManager.default.removeItem(atPath: directory.path("out/HomeDomain/Library/read-only"))
    let result = try Self.extract(backup, directory)
    #expect(result.fileCount == 5 && result.keptCount == 3)
    #expect(try fileNumber(of: "HomeDomain/top.bin") == fileNumberBefore)
    #expect(try entries(in: directory, "out") == Self.expected)
  }

  /// Returns a file system that does not sync, and whose disk is full after a number of writes.
  private func disk(fullAfter writeLimit: Int) -> FileSystem {
    let writeCount = Locked(0)
    return FileSystem { call in
      switch call {
      case .sync, .syncFileSystem: return .omitted
      case .write:
        let isFull = writeCount.withLock { count in
          count += 1
          return count > writeLimit
        }
        return isFull ? .failure(.noSpace) : nil
      default: return nil
      }
    }
  }

  /// Returns a file system that does not sync, and that waits before each write.
  private func slowDisk(microsecondsPerWrite: UInt32) -> FileSystem {
    FileSystem { call in
      if call == .write { usleep(microsecondsPerWrite) }
      return call == .sync || call == .syncFileSystem ? .omitted : nil
    }
  }

  @Test("An interrupted extraction can be resumed with the same result")
  func resumed() throws {
    let directory = try TemporaryDirectory()
    let files = (0..<60).map { FileTreeBackup.File.text("f/\($0)", String(repeating: "\($0)", count: 5_000)) }
    let backup = try FileTreeBackup(files)
    try backup.write(to: directory)
    try Self.extract(backup, directory, to: "whole")
    for writeLimit in [1, 5, 40] {
      let error = #expect(throws: KeyhaulError.self) {
        try Self.extract(backup, directory, system: disk(fullAfter: writeLimit))
      }
      #expect(error?.code == .noSpace)
    }
    let error = #expect(throws: KeyhaulError.self) {
      try Self.extract(backup, directory, system: slowDisk(microsecondsPerWrite: 20_000)) { done, _ in done < 20_000 }
    }
    #expect(error?.code == .interrupted)
    let result = try Self.extract(backup, directory)
    #expect(result.keptCount > 0 && result.fileCount == 60)
    #expect(try entries(in: directory, "out") == entries(in: directory, "whole"))
    #expect(try directory.read("out/keyhaul-files.jsonl") == directory.read("whole/keyhaul-files.jsonl"))
  }

  @Test("An extracted file counts as done only after it is synced")
  func syncFails() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files)
    try backup.write(to: directory)
    let failing = FileSystem { call in
      switch call {
      case .sync: .omitted
      case .syncFileSystem: .failure(.ioError)
      default: nil
      }
    }
    let error = #expect(throws: KeyhaulError.self) { try Self.extract(backup, directory, system: failing) }
    #expect(error?.code == .unwritable)
    // The files are renamed, but they are not in the journal.
    #expect(try directory.read("out/HomeDomain/Library/notes.txt") == Array("milk".utf8))
    #expect(try directory.read("out/.keyhaul-part/files.jsonl").count { $0 == UInt8(ascii: "\n") } == 1)
    let result = try Self.extract(backup, directory)
    #expect(result.keptCount == 0 && result.fileCount == 5)
    #expect(try entries(in: directory, "out") == Self.expected)
  }

  @Test("The parent folders of a target are created with access for the owner only")
  func parentFolders() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files)
    try backup.write(to: directory)
    try Self.extract(backup, directory, to: "some/where/deep/")
    #expect(try entries(in: directory, "some/where/deep") == Self.expected)
    for name in ["some", "some/where", "some/where/deep"] {
      let mode = try FileManager.default.attributesOfItem(atPath: directory.path(name))[.posixPermissions] as? Int
      #expect(mode == 0o700, "\(name)")
    }
    try directory.write([1], to: "file")
    let error = #expect(throws: KeyhaulError.self) { try Self.extract(backup, directory, to: "file/in/it") }
    #expect(error.map { [.unwritable, .occupied].contains($0.code) } == true)
    #expect(try directory.read("file") == [1])
  }

  @Test("Unreadable files are reported and counted, and all others are extracted")
  func faults() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup([
      .text("whole", "whole"), .init(path: "gone", content: [1], isStored: false),
      .init(path: "cut", content: Array(repeating: 9, count: 50), damage: { $0.dropLast(3) }),
      // The keybag has no key of class 12.
      .init(path: "closed", content: [1, 2, 3], keyClass: 12),
      .init(path: "other", content: [4], damage: { $0.map { ~$0 } }),
      .init(path: "absent and empty", content: [], isStored: false),
    ])
    try backup.write(to: directory)
    let result = try Self.extract(backup, directory)
    #expect(result.fileCount == 2 && !result.isComplete)
    #expect(result.faults == [.payloadMissing: 1, .damaged: 2, .keyUnavailable: 1])
    #expect(
      result.namedFaults.map(\.path) == [
        "HomeDomain/gone", "HomeDomain/cut", "HomeDomain/closed", "HomeDomain/other",
      ])
    #expect(
      try entries(in: directory, "out").keys.sorted() == [
        "HomeDomain", "HomeDomain/absent and empty", "HomeDomain/whole",
      ])
  }

  @Test("Extracted files are compared with the manifest's digests of the stored bytes or the plaintext")
  func digests() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup([
      .init(path: "stored", content: [1], digest: .stored), .init(path: "plain", content: [2], digest: .plain),
      .init(path: "wrong", content: [3], digest: .wrong), .init(path: "none", content: [4], digest: .none),
    ])
    try backup.write(to: directory)
    let result = try Self.extract(backup, directory)
    #expect(result.digests == [.matches: 2, .differs: 1, .none: 1])
    #expect(result.differingFiles == ["HomeDomain/wrong"] && !result.isComplete && result.faults.isEmpty)
  }

  @Test("The target folder must be new, empty, or from an earlier extraction of the same files")
  func targetFolder() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup(Self.files)
    try backup.write(to: directory)
    try directory.write([1], to: "other/mine")
    let before = try tree(directory.path("other"))
    func refusal(_ out: String, selection: String = "all") throws -> String? {
      do {
        try Self.extract(backup, directory, to: out, selection: selection)
        return nil
      } catch let error as KeyhaulError {
        #expect(error.code == .occupied)
        // Removes the path of the temporary directory from the reason.
        return error.reason.replacing(directory.path.trimmingCharacters(in: ["/"]), with: "").replacing(
          "\"//", with: "\"")
      }
    }
    let otherRun =
      "contains files from a run with other flags, from another backup, or from before this backup "
      + "changed"
    #expect(try refusal("other") == "\"other\" contains other files")
    #expect(try tree(directory.path("other")) == before)
    #expect(try refusal("other/mine") == "\"other/mine\" \(otherRun)")
    try FileManager.default.createDirectory(at: directory.url("empty"), withIntermediateDirectories: false)
    #expect(try refusal("empty") == nil)
    #expect(try refusal("empty", selection: "some") == "\"empty\" \(otherRun)")
    #expect(try refusal("empty") == nil)
  }

  @Test("An extraction without enough free space is refused in advance")
  func freeSpace() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup([.text("large", "x"), .init(path: "said to be huge", content: [1], size: 1 << 60)])
    try backup.write(to: directory)
    // Only the stored size counts, not the recorded one.
    #expect(try Self.extract(backup, directory).fileCount == 2)
    let identifier = try ListedFile.fileIdentifier(domain: "HomeDomain", relativePath: "large")
    let file = try FileHandle(forWritingTo: directory.url("backup/\(identifier.prefix(2))/\(identifier)"))
    try file.truncate(atOffset: 1 << 40)
    try file.close()
    let error = #expect(throws: KeyhaulError.self) { try Self.extract(backup, directory, to: "new") }
    #expect(error?.code == .noSpace)
    #expect(!FileManager.default.fileExists(atPath: directory.path("new")))
  }

  @Test("An extraction stops immediately if the progress closure returns false")
  func interrupted() throws {
    let directory = try TemporaryDirectory()
    let backup = try FileTreeBackup([.init(path: "large", content: [UInt8](repeating: 1, count: 4 << 20))])
    try backup.write(to: directory)
    let slow = slowDisk(microsecondsPerWrite: 40_000)
    let error = #expect(throws: KeyhaulError.self) {
      try Self.extract(backup, directory, system: slow, progress: { _, _ in false })
    }
    #expect(error?.code == .interrupted)
    #expect(try entries(in: directory, "out")["HomeDomain/large"] == nil)
    #expect(try Self.extract(backup, directory).fileCount == 1)
  }
}
