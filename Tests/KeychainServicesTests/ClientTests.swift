import Basics
import Foundation
import KeychainFormats
import KeychainServices
import KeyhaulTesting
import Testing
import VirtualDevice

private var item: [CFString: Any] { [kSecClass: kSecClassGenericPassword, kSecAttrAccount: "anna"] }

private func add() -> OSStatus { SecItemAdd(item as CFDictionary, nil) }
private func find() -> OSStatus { SecItemCopyMatching(item as CFDictionary, nil) }

/// The only tests that change the client of the process, so no other test can interfere.
@Suite("The keychain client of the process", .serialized)
struct ProcessClientTests {
  @Test("A process without a client gets a new device, and uses it until another client is set")
  func choosing() throws {
    defer { DefaultKeychain.use(nil) }
    DefaultKeychain.use(nil)
    #expect(find() == errSecItemNotFound)
    #expect(add() == errSecSuccess)
    #expect(find() == errSecSuccess)
    let automaticClient = try DefaultKeychain.client()
    #expect(automaticClient.notificationCenter === NotificationCenter.default)

    let chosenClient = try KeychainClient.onNewDevice(app: "mail")
    DefaultKeychain.use(chosenClient.device, as: "mail")
    #expect(find() == errSecItemNotFound)
    #expect(add() == errSecSuccess)
    #expect(find() == errSecSuccess)

    DefaultKeychain.use(automaticClient)
    #expect(find() == errSecSuccess)
    DefaultKeychain.use(nil)
    #expect(find() == errSecItemNotFound)
  }

  @Test("A detached thread uses the client of the process, and a child task the client of its parent")
  func threads() async throws {
    defer { DefaultKeychain.use(nil) }
    let processClient = try KeychainClient.onNewDevice()
    DefaultKeychain.use(processClient)
    let taskClient = try KeychainClient.onNewDevice()
    await DefaultKeychain.using(taskClient) {
      #expect(add() == errSecSuccess)
      async let child = find()
      #expect(await child == errSecSuccess)
      let detachedStatus = await Task.detached { find() }.value
      #expect(detachedStatus == errSecItemNotFound)
    }
    #expect(find() == errSecItemNotFound)
  }

  @Test("A phone that runs in the whole process receives the calls of queues and detached tasks")
  func wholeProcess() async throws {
    defer { DefaultKeychain.use(nil) }
    DefaultKeychain.use(nil)
    let phone = try Phone()
    try await phone.run(inWholeProcess: true) {
      #expect(await Task.detached { add() }.value == errSecSuccess)
      let queueStatus = await withCheckedContinuation { continuation in
        DispatchQueue.global().async { continuation.resume(returning: find()) }
      }
      #expect(queueStatus == errSecSuccess)
    }
    #expect(try phone.itemCount == 1)
    #expect(await Task.detached { find() }.value == errSecItemNotFound)
  }

  @Test("A second phone cannot run in the whole process at the same time, but can run in its own task")
  func secondPhone() throws {
    let phone = try Phone()
    let otherPhone = try Phone()
    try phone.run(inWholeProcess: true) {
      let error = #expect(throws: PhoneError.self) { try otherPhone.run(inWholeProcess: true) { _ = add() } }
      #expect(error?.code == .processInUse)
      #expect(error.map { "\($0)" }?.contains("@Suite(.serialized)") == true)
      try otherPhone.run { #expect(find() == errSecItemNotFound) }
    }
    try otherPhone.run(inWholeProcess: true) { #expect(add() == errSecSuccess) }
    #expect(try phone.itemCount == 0)
    #expect(try otherPhone.itemCount == 1)
  }

  @Test("After a failed run in the whole process, another phone can run in the whole process")
  func failedRun() throws {
    struct Failure: Error {}
    #expect(throws: Failure.self) { try Phone().run(inWholeProcess: true) { throw Failure() } }
    try Phone().run(inWholeProcess: true) { #expect(add() == errSecSuccess) }
  }
}

@Suite("Keychain clients")
struct ClientTests {
  @Test("A hundred concurrent tasks do not see the items of each other's devices")
  func tasks() async throws {
    try await withThrowingTaskGroup(of: [OSStatus].self) { group in
      for _ in 0..<100 {
        group.addTask {
          try await DefaultKeychain.using(KeychainClient.onNewDevice()) {
            let statusBeforeAdding = find()
            await Task.yield()
            return [statusBeforeAdding, add(), add()]
          }
        }
      }
      for try await statuses in group {
        #expect(statuses == [errSecItemNotFound, errSecSuccess, errSecDuplicateItem])
      }
    }
  }

  @Test("Two apps on a device share only the items of their common access group")
  func twoApps() throws {
    let notes = try KeychainClient.onNewDevice(
      app: "notes", accessGroups: ["notes", "shared"],
      options: DeviceOptions(apps: [DeviceApp(name: "mail", accessGroups: ["mail", "shared"])]))
    let mail = KeychainClient(notes.device, as: "mail")
    #expect(notes.perform { add() } == errSecSuccess)
    #expect(mail.perform { find() } == errSecItemNotFound)
    let sharedItem = item.merging([kSecAttrAccessGroup: "shared"]) { $1 }
    #expect(notes.perform { SecItemAdd(sharedItem as CFDictionary, nil) } == errSecSuccess)
    #expect(mail.perform { find() } == errSecSuccess)
    let queryInGroupOfNotes = item.merging([kSecAttrAccessGroup: "notes"]) { $1 }
    #expect(mail.perform { SecItemCopyMatching(queryInGroupOfNotes as CFDictionary, nil) } == errSecMissingEntitlement)
    #expect(KeychainClient(notes.device, as: "stranger").perform { add() } == errSecMissingEntitlement)
  }

  /// Adds an item and reads it.
  ///
  /// - Returns: A description of the failure, or `nil` if both succeed.
  private static func failureOfAddingAndReading(_ name: String) -> String? {
    let item: [CFString: Any] = [kSecClass: kSecClassGenericPassword, kSecAttrAccount: name]
    let newItem = item.merging([kSecValueData: Data(name.utf8)]) { $1 }
    let query = item.merging([kSecReturnData: true]) { $1 }
    var result: CFTypeRef?
    let additionStatus = SecItemAdd(newItem as CFDictionary, nil)
    let searchStatus = SecItemCopyMatching(query as CFDictionary, &result)
    let isRead = result as? Data == Data(name.utf8)
    if additionStatus == errSecSuccess, searchStatus == errSecSuccess, isRead { return nil }
    return "\(name): \(additionStatus), \(searchStatus), \(isRead)"
  }

  @Test("Concurrent calls of several threads on a device lose no items")
  func contention() throws {
    let client = try KeychainClient.onNewDevice()
    let failures = Locked<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      client.perform {
        for number in 0..<25 {
          guard let failure = Self.failureOfAddingAndReading("\(thread)-\(number)") else { continue }
          failures.withLock { $0.append(failure) }
        }
      }
    }
    #expect(failures.withLock(\.self) == [])
    #expect(try client.itemCount() == 8 * 25)
  }

  @Test("A call waits for a device in use, and fails with errSecNotAvailable (-25291) after the timeout")
  func busyDevice() throws {
    let environment = try TestEnvironment()
    let phone = try environment.phone()
    let session = try phone.device.openSession(.writing, verb: "test")
    #expect(phone.perform { add() } == errSecNotAvailable)
    #expect(environment.clock.waits.reduce(.zero, +) == KeychainClient.lockTimeout)
    session.invalidate()
    #expect(phone.perform { add() } == errSecSuccess)
  }

  @Test("A temporary device is deleted with its client")
  func cleanUp() throws {
    var client: KeychainClient? = try .onNewDevice()
    let directory = try #require(client?.device.directory)
    #expect(FileManager.default.fileExists(atPath: directory))
    #expect(client?.perform { add() } == errSecSuccess)
    client = nil
    #expect(!FileManager.default.fileExists(atPath: directory))
  }

  @Test("Calls to a device with a deleted directory are errSecNotAvailable (-25291)")
  func deletedDirectory() throws {
    let client = try KeychainClient.onNewDevice()
    try FileManager.default.removeItem(atPath: client.device.directory)
    #expect(client.perform { [add(), find()] } == [errSecNotAvailable, errSecNotAvailable])
  }
}

@Suite("Lock notifications")
struct LockNotificationTests {
  @Test("A temporary device locks at once, because its clock skips the ten seconds before the lock")
  func jumpingClock() throws {
    let phone = try KeychainClient.onNewDevice(passcode: "1234")
    let clock = phone.device.environment.clock
    let start = clock.now().secondsSinceReferenceDate
    try phone.lock()
    #expect(clock.now().secondsSinceReferenceDate - start >= 10)
    #expect(phone.perform { add() } == errSecInteractionNotAllowed)
    try phone.unlock(passcode: "1234")
    #expect(phone.perform { add() } == errSecSuccess)
  }

  /// Returns the names of the notifications that are posted while the closure runs.
  private func notifications(
    of center: NotificationCenter, during body: () throws -> Void
  ) rethrows -> [String] {
    let names = Locked<[String]>([])
    let tokens = [
      Notification.Name.protectedDataWillBecomeUnavailable, .protectedDataDidBecomeAvailable,
      .applicationDidEnterBackground,
    ].map { name in
      center.addObserver(forName: name, object: nil, queue: nil) { note in
        names.withLock { $0.append(note.name.rawValue) }
      }
    }
    defer { for token in tokens { center.removeObserver(token) } }
    try body()
    return names.withLock(\.self)
  }

  @Test("Apps are notified of the lock ten seconds in advance, of the unlock, and of the move to the background")
  func notifications() throws {
    let environment = try TestEnvironment()
    let phone = try environment.phone()
    let otherPhone = try environment.phone()
    var names: [String] = []
    let namesOfOtherPhone = try notifications(of: otherPhone.notificationCenter) {
      names = try notifications(of: phone.notificationCenter) {
        try phone.lock()
        try phone.unlock()
        phone.enterBackground()
      }
    }
    #expect(
      names == [
        "UIApplicationProtectedDataWillBecomeUnavailable", "UIApplicationProtectedDataDidBecomeAvailable",
        "UIApplicationDidEnterBackgroundNotification",
      ])
    #expect(namesOfOtherPhone == [], "only the locked phone posts notifications")
  }

  @Test("Items are readable during the ten seconds before the lock, and an unlock in that time cancels the lock")
  func grace() throws {
    let environment = try TestEnvironment()
    let phone = try environment.phone()
    #expect(phone.perform { add() } == errSecSuccess)
    // Another press changes nothing.
    try phone.pressSideButton()
    try phone.pressSideButton()
    #expect(phone.isLocking)
    environment.clock.advance(by: .seconds(9))
    #expect(phone.perform { find() } == errSecSuccess)
    // The database is checkpointed when a call returns.
    #expect(!FileManager.default.fileExists(atPath: phone.device.directory + "/keychain-2.db-wal"))
    try phone.unlock()
    environment.clock.advance(by: .seconds(60))
    #expect(phone.perform { find() } == errSecSuccess)

    try phone.pressSideButton()
    environment.clock.advance(by: .seconds(10))
    #expect(phone.perform { find() } == errSecInteractionNotAllowed)
    #expect(!phone.isLocking)
    try phone.device.withSession(.reading, verb: "test") { session in #expect(session.state == .locked) }
    try phone.lock()
    #expect(environment.clock.waits == [], "a phone that is already locked does not wait")
  }

  @Test("An unlock before the end of the ten seconds posts that protected data is available")
  func unlockInTime() throws {
    // The first notification is posted when the side button is pressed.
    let phone = try TestEnvironment().phone()
    let names = try notifications(of: phone.notificationCenter) {
      try phone.pressSideButton()
      try phone.unlock()
    }
    #expect(names.last == Notification.Name.protectedDataDidBecomeAvailable.rawValue)
    #expect(names.count == 2)
  }

  @Test("An app can read items when it is notified of the lock")
  func lastRead() throws {
    let phone = try TestEnvironment().phone()
    #expect(phone.perform { add() } == errSecSuccess)
    let statuses = Locked<[OSStatus]>([])
    let token = phone.notificationCenter.addObserver(
      forName: .protectedDataWillBecomeUnavailable, object: nil, queue: nil
    ) { [weak phone] _ in
      let status = phone?.perform { find() } ?? errSecParam
      statuses.withLock { $0.append(status) }
    }
    defer { phone.notificationCenter.removeObserver(token) }
    try phone.lock()
    #expect(statuses.withLock(\.self) == [errSecSuccess])
    #expect(phone.perform { find() } == errSecInteractionNotAllowed)
  }

  @Test("A device without a passcode cannot be locked, and posts no notification")
  func noPasscode() throws {
    let phone = try TestEnvironment().phone(passcode: "")
    let names = notifications(of: phone.notificationCenter) {
      #expect(throws: KeyhaulError.self) { try phone.lock() }
    }
    #expect(names == [])
    #expect(phone.perform { add() } == errSecSuccess, "the failed lock does not block the device")
  }
}
