import Basics
import Foundation
import KeychainCrypto
import KeychainServices
import SystemPackage
import TestSupport
import Testing
import VirtualDevice

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A temporary device stays open between calls, which must not affect other sessions.
@Suite("Devices that stay open between calls", .onAPhone)
struct OpenDeviceTests {
  let item: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrService: "notes", kSecAttrAccount: "anna"]

  private func add(_ account: String) -> OSStatus {
    var newItem = item
    newItem[kSecAttrAccount] = account
    newItem[kSecValueData] = Data("t0ken".utf8)
    return SecItemAdd(newItem as CFDictionary, nil)
  }

  @Test(
    "A session between two calls sees the changes of the earlier call, and the later call sees the session's changes"
  )
  func sessionBetweenCalls() throws {
    let phone = try DefaultKeychain.client()
    // The device stays open after the first call, so the later repetitions begin with an open device.
    for repetition in 1...3 {
      #expect(add("anna") == errSecSuccess)
      let (revision, itemCount) = try phone.device.withSession(.reading, verb: "test") {
        (session) throws(KeyhaulError) in (session.record.revision, try session.itemCount)
      }
      #expect(itemCount == 1, "repetition \(repetition)")
      try phone.device.withSession(.writing, verb: "test") { (session) throws(KeyhaulError) in
        try session.erase()
      }
      #expect(SecItemCopyMatching(item as CFDictionary, nil) == errSecItemNotFound)
      #expect(add("bert") == errSecSuccess)
      #expect(try phone.itemCount() == 1)
      let newRevision = try phone.device.withSession(.reading, verb: "test") { (session) throws(KeyhaulError) in
        session.record.revision
      }
      #expect(newRevision != revision)
      var bert = item
      bert[kSecAttrAccount] = "bert"
      #expect(SecItemDelete(bert as CFDictionary) == errSecSuccess)
    }
  }

  @Test("Another process can lock the device shortly after the last call")
  func otherProcess() throws {
    let phone = try DefaultKeychain.client()
    #expect(add("anna") == errSecSuccess)
    // The system treats a lock of another file descriptor like a lock of another process.
    let file = try FileDescriptor.open(FilePath(phone.device.directory + "/lock"), .readWrite)
    defer { try? file.close() }
    // Waits up to ten seconds.
    var attempts = 0
    while flock(file.rawValue, LOCK_EX | LOCK_NB) != 0, attempts < 1000 {
      usleep(10_000)
      attempts += 1
    }
    #expect(attempts < 1000)
    #expect(flock(file.rawValue, LOCK_UN) == 0)
    #expect(add("anna") == errSecDuplicateItem)
  }

  @Test(
    "A thread or process that waits for the device gets it although another thread makes calls continuously",
    arguments: [false, true])
  func waiting(asAnotherProcess: Bool) throws {
    // Uses the system's clock, because the clock of temporary devices skips waits.
    let phone = try KeychainClient.onNewDevice(environment: DeviceEnvironment(passcodeRounds: 2))
    var device = phone.device
    // Contains a link to the device set. It must exist until the end of the test.
    let linkDirectory = try TemporaryDirectory()
    defer { withExtendedLifetime(linkDirectory) {} }
    if asAnotherProcess {
      // With another path, this process does not recognize the device.
      let home = URL(filePath: device.directory).deletingLastPathComponent()
      try FileManager.default.createSymbolicLink(
        at: URL(filePath: linkDirectory.path("home")), withDestinationURL: home)
      device = try DeviceSet(path: linkDirectory.path("home")).device(device.name)
    }
    let searches = RepeatedSearches()
    Thread { searches.run(on: phone) }.start()
    defer { searches.stop() }
    for _ in 0..<3 {
      let count = try device.withSession(.writing, verb: "test", wait: .seconds(20)) {
        (session) throws(KeyhaulError) in try session.itemCount
      }
      #expect(count == 0)
    }
    searches.stop()
    #expect(searches.count < RepeatedSearches.maximumCount)
  }

  /// Searches the keychain repeatedly until `stop()`.
  final class RepeatedSearches: Sendable {
    static let maximumCount = 1_000_000
    private let state = Locked((count: 0, isStopped: false))

    var count: Int { state.withLock { $0.count } }
    func stop() { state.withLock { $0.isStopped = true } }

    func run(on phone: KeychainClient) {
      let query = [kSecClass: kSecClassGenericPassword] as [CFString: Any]
      DefaultKeychain.using(phone) {
        while state.withLock({ !$0.isStopped && $0.count < Self.maximumCount }) {
          _ = SecItemCopyMatching(query as CFDictionary, nil)
          state.withLock { $0.count += 1 }
        }
      }
    }
  }

  @Test("The device can be opened again after an unlock with the wrong passcode")
  func failedUnlock() throws {
    let phone = try DefaultKeychain.client()
    #expect(add("anna") == errSecSuccess)
    #expect(throws: KeyhaulError.self) { try phone.unlock(passcode: "9999") }
    #expect(add("bert") == errSecSuccess)
    #expect(try phone.itemCount() == 2)
  }

  @Test("The directory is deleted with the client, even shortly after a call")
  func deletion() throws {
    var phone: KeychainClient? = try .onNewDevice()
    let directory = try #require(phone?.device.directory)
    #expect(phone?.perform { add("anna") } == errSecSuccess)
    #expect(FileManager.default.fileExists(atPath: directory))
    phone = nil
    #expect(!FileManager.default.fileExists(atPath: directory))
  }
}
