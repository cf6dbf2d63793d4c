import Backups
import Basics
import Foundation
import KeychainFormats
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Injects a fault into one system call, chosen by its number.
final class SingleFault: Sendable {
  private let state: Mutex<(count: Int, failingCall: Int, fault: FileSystem.InjectedFault)>
  private let isRepeated: Bool

  /// Creates a fault.
  ///
  /// - Parameters:
  ///   - failingCall: The number of the call that fails. The first call has the number 1.
  ///   - isRepeated: Whether all later calls fail as well.
  init(at failingCall: Int, _ fault: FileSystem.InjectedFault, isRepeated: Bool = false) {
    state = Mutex((0, failingCall, fault))
    self.isRepeated = isRepeated
  }

  var callCount: Int { state.withLock { $0.count } }

  var system: FileSystem {
    FileSystem { [self] call in
      state.withLock { state in
        state.count += 1
        let fails = isRepeated ? state.count >= state.failingCall : state.count == state.failingCall
        if fails { return state.fault }
        return call == .sync ? .omitted : nil
      }
    }
  }
}

extension FileSystem.InjectedFault {
  /// Returns the numbers of the calls into which a test injects this fault, one after the other.
  ///
  /// A quick run has every third call. The faults start at different calls, so that together they cover all.
  func calls(among faults: [FileSystem.InjectedFault]) -> StrideThrough<Int> {
    let lastCall = 100_000
    if Cases.isExhaustive { return stride(from: 1, through: lastCall, by: 1) }
    let faultIndex = faults.firstIndex(of: self) ?? 0
    return stride(from: 1 + faultIndex % 3, through: lastCall, by: 3)
  }
}

@Suite("Failures of the disk")
struct FaultInjectionTests {
  static let faults: [FileSystem.InjectedFault] = [
    .failure(.noSpace), .failure(.ioError), .failure(.interrupted), .failure(.diskQuotaExceeded), .short,
  ]

  static let destinations = ["new/", "old/", "home/", "new.tar", "old.tar", "old.zip", "old.tar.gz", "old.tar.zst"]

  /// Writes the old backup to the destination if its name begins with "old", and an unrelated file to `home`.
  private func prepare(_ directory: TemporaryDirectory, destination: String, oldBackup: StoredBackup) throws {
    let target = BackupDestination(path: directory.path(destination))
    if destination.hasPrefix("old") {
      _ = try BackupInstaller(system: unsynced).place(oldBackup.outgoing, at: target, replace: false)
    }
    try directory.write([1], to: "home/note.txt")
  }

  private func backup(seed: String) throws -> StoredBackup {
    let files = try SampleBackup(seed: seed).storedFiles()
    return StoredBackup(
      directoryName: SampleBackup.udid, modificationTime: 0,
      files: try files.map { try StoredFile(path: $0.path, bytes: $0.bytes) })
  }

  /// Writes the new backup repeatedly, with the first, second, and each further call failing, until no call fails.
  @Test(
    "If writing fails, the destination is unchanged, without temporary files (a third of the calls in a quick run)",
    arguments: destinations, faults)
  func everyCall(destination: String, fault: FileSystem.InjectedFault) throws {
    let oldBackup = try backup(seed: "old")
    let newBackup = try backup(seed: "new")
    var treeAfterSuccess: [String]?
    for call in fault.calls(among: Self.faults) {
      let directory = try TemporaryDirectory()
      try prepare(directory, destination: destination, oldBackup: oldBackup)
      let treeBefore = try tree(directory.path)
      let failing = SingleFault(at: call, fault)
      var failure: KeyhaulError?
      do throws(KeyhaulError) {
        _ = try BackupInstaller(system: failing.system).place(
          newBackup.outgoing, at: BackupDestination(path: directory.path(destination)), replace: true)
      } catch {
        failure = error
      }
      let treeAfter = try tree(directory.path)
      if let failure {
        expectCode(of: failure, after: fault, call: call)
        #expect(treeAfter == treeBefore, "call \(call)")
      } else {
        #expect(treeAfter != treeBefore)
        #expect(treeAfter == treeAfterSuccess ?? treeAfter, "call \(call)")
        treeAfterSuccess = treeAfter
      }
      if failing.callCount < call {
        // Each destination needs more calls than this.
        #expect(call > 8, "the fault was injected into \(call - 1) calls")
        return
      }
    }
  }

  private func expectCode(of error: KeyhaulError, after fault: FileSystem.InjectedFault, call: Int) {
    switch fault {
    case .failure(.noSpace), .failure(.diskQuotaExceeded): #expect(error.code == .noSpace, "call \(call): \(error)")
    case .failure(.ioError): #expect(error.code == .unwritable, "call \(call): \(error)")
    default: Issue.record("call \(call): \(error)")
    }
  }

  @Test("If all calls fail from some point on, the old backup remains", arguments: destinations)
  func lastingFailure(destination: String) throws {
    let oldBackup = try backup(seed: "old")
    let newBackup = try backup(seed: "new")
    for call in 1... {
      let directory = try TemporaryDirectory()
      try prepare(directory, destination: destination, oldBackup: oldBackup)
      let treeBefore = try tree(directory.path)
      let failing = SingleFault(at: call, .failure(.ioError), isRepeated: true)
      let target = BackupDestination(path: directory.path(destination))
      let result = try? BackupInstaller(system: failing.system).place(newBackup.outgoing, at: target, replace: true)
      if result != nil { return }
      // Hidden temporary files remain, because their removal fails as well.
      let visibleFiles = try tree(directory.path).filter { !$0.hasPrefix(".") && !$0.contains("/.") }
      #expect(visibleFiles == treeBefore, "from call \(call) on")
      #expect(call < 200)
    }
  }

  @Test(
    "If names cannot be exchanged, a directory is replaced with two renames, and restored if the second one fails",
    arguments: [0, 1, 2])
  func withoutExchange(failingRename: Int) throws {
    let directory = try TemporaryDirectory()
    try prepare(directory, destination: "old/", oldBackup: try backup(seed: "old"))
    let newBackup = try backup(seed: "new")
    let renameCount = Mutex(0)
    let system = FileSystem { call in
      switch call {
      case .exchange: return .failure(.noFunction)
      case .rename:
        let renameNumber = renameCount.withLock { count in
          count += 1
          return count
        }
        return renameNumber == failingRename ? .failure(.ioError) : nil
      default: return nil
      }
    }
    let treeBefore = try tree(directory.path)
    let outcome = try? BackupInstaller(system: system).place(
      newBackup.outgoing, at: .directory(directory.path("old")), replace: true)
    let treeAfter = try tree(directory.path)
    #expect((outcome != nil) == (failingRename == 0))
    #expect((treeAfter == treeBefore) == (failingRename != 0))
    #expect(outcome?.leftover == nil)
    #expect(treeAfter.count == treeBefore.count)
  }

  @Test(
    "The final name is synced after the last rename, and a failure of this sync is reported",
    arguments: ["new/", "old/", "new.tar", "old.tar"])
  func durableName(destination: String) throws {
    let withoutFailure = try installNewBackup(at: destination, failingSync: nil)
    #expect(withoutFailure.isDurable)
    let lastRename = try #require(withoutFailure.calls.lastIndex { [.rename, .exchange].contains($0) })
    #expect(withoutFailure.calls[lastRename...].contains(.sync))
    let lastSync = withoutFailure.calls.count { $0 == .sync }
    #expect(try !installNewBackup(at: destination, failingSync: lastSync).isDurable)
  }

  /// Installs the new backup and returns all system calls and whether the final name is durable.
  ///
  /// - Parameter failingSync: The number of the sync that fails, or `nil` if none fails.
  private func installNewBackup(
    at destination: String, failingSync: Int?
  ) throws -> (calls: [FileSystem.Call], isDurable: Bool) {
    let directory = try TemporaryDirectory()
    try prepare(directory, destination: destination, oldBackup: try backup(seed: "old"))
    let calls = Mutex<[FileSystem.Call]>([])
    let system = FileSystem { call in
      calls.withLock { calls in
        calls.append(call)
        guard call == .sync else { return nil }
        return calls.count { $0 == .sync } == failingSync ? .failure(.ioError) : .omitted
      }
    }
    let installed = try BackupInstaller(system: system).place(
      try backup(seed: "new").outgoing, at: BackupDestination(path: directory.path(destination)), replace: true)
    return (calls.withLock { $0 }, installed.isDurable)
  }

  @Test("The error for a full disk gives the required space")
  func diskFull() throws {
    let directory = try TemporaryDirectory()
    let sample = try SampleBackup()
    let system = FileSystem { $0 == .write ? .failure(.noSpace) : nil }
    let error = #expect(throws: KeyhaulError.self) {
      try sample.write(to: .file(directory.path("b.tar"), .tar), system: system)
    }
    let files = try sample.storedFiles()
    let byteCount = files.map(\.bytes.count).reduce(0, +) + sealByteCount(of: files)
    let thousands = byteCount / 1000
    let lastThreeDigits = String(byteCount % 1000 + 1000).dropFirst()
    let required = "\(thousands),\(lastThreeDigits) bytes"
    #expect(error?.reason == "no space left on \(directory.path("b.tar")) (needs \(required))")
    #expect(error?.advice == "free space and run it again; no partial file was left")
    #expect(try tree(directory.path).isEmpty)
  }

  /// Returns the size of a seal: a header, a line for each file, and an authentication code.
  private func sealByteCount(of files: [(path: String, bytes: [UInt8])]) -> Int {
    let headerByteCount = 27
    let hexDigestAndSeparatorsByteCount = 66
    let authenticationCodeByteCount = 65
    let lineByteCounts = files.map { file in
      "\(file.bytes.count) \(file.path)".utf8.count + hexDigestAndSeparatorsByteCount
    }
    return headerByteCount + lineByteCounts.reduce(0, +) + authenticationCodeByteCount
  }

  @Test(
    "A failure of any call while reading a backup is an error",
    arguments: ["old/", "old.tar", "old.zip", "old.tar.zst"])
  func reading(source: String) throws {
    let directory = try TemporaryDirectory()
    try prepare(directory, destination: source, oldBackup: try backup(seed: "old"))
    let digest = try BackupArchive.open(.path(directory.path(source))).digest
    for fault in Self.faults {
      for call in 1... {
        let failing = SingleFault(at: call, fault)
        do {
          let archive = try BackupArchive.open(.path(directory.path(source)), limits: .standard, system: failing.system)
          #expect(archive.digest == digest)
        } catch {
          #expect(error.code == .unreadable, "call \(call): \(error)")
          let isRetried = fault == .short || fault == .failure(.interrupted)
          #expect(!isRetried, "call \(call): \(error)")
        }
        if failing.callCount < call { break }
      }
    }
  }
}
