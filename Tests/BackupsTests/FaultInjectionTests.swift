import Backups
import Basics
import Foundation
import KeychainFormats
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Injects a fault into a single call.
final class SingleFault: Sendable {
  private let state: Mutex<(count: Int, failingCall: Int, fault: FileSystem.InjectedFault)>
  private let isRepeated: Bool

  /// Creates a fault.
  ///
  /// - Parameter isRepeated: Whether all further calls of the kind fail as well.
  init(at failingCall: Int, _ fault: FileSystem.InjectedFault, isRepeated: Bool = false) {
    state = Mutex((0, failingCall, fault))
    self.isRepeated = isRepeated
  }

  var callCount: Int { state.withLock { $0.count } }

  var system: FileSystem {
    FileSystem { [self] call in
      state.withLock { state in
        state.count += 1
        if state.count == state.failingCall || (isRepeated && state.count > state.failingCall) { return state.fault }
        return call == .sync ? .omitted : nil
      }
    }
  }
}

extension FileSystem.InjectedFault {
  /// Returns the calls that fail, one in each round: all, or a third of them in a quick run, which depends on the
  /// fault.
  func calls(among faults: [FileSystem.InjectedFault]) -> StrideThrough<Int> {
    let (first, step) = Cases.isExhaustive ? (1, 1) : (1 + (faults.firstIndex(of: self) ?? 0) % 3, 3)
    return stride(from: first, through: 100_000, by: step)
  }
}

@Suite("Failures of the disk")
struct FaultInjectionTests {
  static let faults: [FileSystem.InjectedFault] = [
    .failure(.noSpace), .failure(.ioError), .failure(.interrupted), .failure(.diskQuotaExceeded), .short,
  ]

  static let destinations = ["new/", "old/", "home/", "new.tar", "old.tar", "old.zip", "old.tar.gz", "old.tar.zst"]

  /// Creates a directory with a backup in `old…` and other content in `home`.
  private func prepare(_ directory: TemporaryDirectory, _ destination: String, _ old: StoredBackup) throws {
    let target = BackupDestination(path: directory.path(destination))
    if destination.hasPrefix("old") {
      _ = try BackupInstaller(system: unsynced).place(old.outgoing, at: target, replace: false)
    }
    try directory.write([1], to: "home/note.txt")
  }

  private func stored(seed: String) throws -> StoredBackup {
    let files = try SampleBackup(seed: seed).storedFiles()
    return StoredBackup(
      directoryName: SampleBackup.udid, modificationTime: 0,
      files: try files.map { try StoredFile(path: $0.path, bytes: $0.bytes) })
  }

  /// Writes repeatedly, with the first, second, and each further call failing, until no call fails.
  @Test(
    "After a failure, the old or the new backup exists, and no other files (a third of the calls in a quick run)",
    arguments: destinations, faults)
  func everyCall(destination: String, fault: FileSystem.InjectedFault) throws {
    let (old, new) = (try stored(seed: "old"), try stored(seed: "new"))
    var after: [String]?
    for call in fault.calls(among: Self.faults) {
      let directory = try TemporaryDirectory()
      try prepare(directory, destination, old)
      let before = try tree(directory.path)
      let failing = SingleFault(at: call, fault)
      var failed = false
      do throws(KeyhaulError) {
        _ = try BackupInstaller(system: failing.system).place(
          new.outgoing, at: BackupDestination(path: directory.path(destination)), replace: true)
      } catch {
        failed = true
        switch fault {
        case .failure(.noSpace), .failure(.diskQuotaExceeded): #expect(error.code == .noSpace, "call \(call): \(error)")
        case .failure(.ioError): #expect(error.code == .unwritable, "call \(call): \(error)")
        default: Issue.record("call \(call): \(error)")
        }
      }
      let now = try tree(directory.path)
      if failed {
        #expect(now == before, "call \(call)")
      } else {
        after = after ?? now
        #expect(now == after, "call \(call)")
        #expect(now != before)
      }
      if failing.callCount < call {
        #expect(call > 8, "the fault was injected into \(call - 1) calls")
        return
      }
    }
  }

  @Test("If all calls fail from some point on, the old backup remains", arguments: destinations)
  func lastingFailure(destination: String) throws {
    let (old, new) = (try stored(seed: "old"), try stored(seed: "new"))
    for call in 1... {
      let directory = try TemporaryDirectory()
      try prepare(directory, destination, old)
      let before = try tree(directory.path)
      let failing = SingleFault(at: call, .failure(.ioError), isRepeated: true)
      let target = BackupDestination(path: directory.path(destination))
      let placed = try? BackupInstaller(system: failing.system).place(new.outgoing, at: target, replace: true)
      if placed != nil { return }
      // If all calls fail, hidden temporary files cannot be removed. The destination is unchanged.
      let now = try tree(directory.path).filter { !$0.hasPrefix(".") && !$0.contains("/.") }
      #expect(now == before, "from call \(call) on")
      #expect(call < 200)
    }
  }

  @Test(
    "Without an exchange of names, a directory is replaced by two renames, and restored if the second one fails",
    arguments: [0, 1, 2])
  func withoutExchange(failingRename: Int) throws {
    let directory = try TemporaryDirectory()
    try prepare(directory, "old/", try stored(seed: "old"))
    let new = try stored(seed: "new")
    let renames = Mutex(0)
    let system = FileSystem { call in
      switch call {
      case .exchange: return .failure(.noFunction)
      case .rename:
        let number = renames.withLock { count in
          count += 1
          return count
        }
        return number == failingRename ? .failure(.ioError) : nil
      default: return nil
      }
    }
    let before = try tree(directory.path)
    let outcome = try? BackupInstaller(system: system).place(
      new.outgoing, at: .directory(directory.path("old")), replace: true)
    let after = try tree(directory.path)
    #expect((outcome != nil) == (failingRename == 0))
    #expect((after == before) == (failingRename != 0))
    #expect(outcome?.leftover == nil)
    #expect(after.count == before.count)
  }

  @Test(
    "The final name is synced after the last rename, and a failure of this sync is reported",
    arguments: ["new/", "old/", "new.tar", "old.tar"])
  func durableName(destination: String) throws {
    func place(failingSync: Int?) throws -> (calls: [FileSystem.Call], isDurable: Bool) {
      let directory = try TemporaryDirectory()
      try prepare(directory, destination, try stored(seed: "old"))
      let calls = Mutex<[FileSystem.Call]>([])
      let system = FileSystem { call in
        calls.withLock { calls in
          calls.append(call)
          guard call == .sync else { return nil }
          return calls.count { $0 == .sync } == failingSync ? .failure(.ioError) : .omitted
        }
      }
      let placed = try BackupInstaller(system: system).place(
        try stored(seed: "new").outgoing, at: BackupDestination(path: directory.path(destination)), replace: true)
      return (calls.withLock { $0 }, placed.isDurable)
    }
    let original = try place(failingSync: nil)
    #expect(original.isDurable)
    let rename = try #require(original.calls.lastIndex { [.rename, .exchange].contains($0) })
    #expect(original.calls[rename...].contains(.sync))
    let failed = try place(failingSync: original.calls.count { $0 == .sync })
    #expect(!failed.isDurable)
  }

  @Test("The error for a full disk gives the required space")
  func diskFull() throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    let system = FileSystem { $0 == .write ? .failure(.noSpace) : nil }
    // Five lines of a seal, its header, and its code.
    let listed = try sample.storedFiles().reduce(0) { $0 + "\($1.bytes.count) \($1.path)".utf8.count + 66 }
    let size = try sample.storedFiles().reduce(27 + 65 + listed) { $0 + $1.bytes.count }
    let error = #expect(throws: KeyhaulError.self) {
      try sample.write(to: .file(directory.path("b.tar"), .tar), system: system)
    }
    let text = "\(size / 1000),\(String(size % 1000 + 1000).dropFirst())"
    #expect(error?.reason == "no space left on \(directory.path("b.tar")) (needs \(text) bytes)")
    #expect(error?.advice == "free space and run it again; no partial file was left")
    #expect(try tree(directory.path).isEmpty)
  }

  @Test(
    "A failure of any call while reading a backup is an error",
    arguments: ["old/", "old.tar", "old.zip", "old.tar.zst"])
  func reading(source: String) throws {
    let directory = try TemporaryDirectory()
    try prepare(directory, source, try stored(seed: "old"))
    let original = try BackupArchive.open(.path(directory.path(source))).digest
    for fault in Self.faults {
      for call in 1... {
        let failing = SingleFault(at: call, fault)
        do {
          let archive = try BackupArchive.open(.path(directory.path(source)), limits: .standard, system: failing.system)
          #expect(archive.digest == original)
        } catch {
          #expect(error.code == .unreadable, "call \(call): \(error)")
          #expect(fault != .short && fault != .failure(.interrupted), "call \(call): \(error)")
        }
        if failing.callCount < call { break }
      }
    }
  }
}
