import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

/// A backup client that stores its files in memory and responds to the device's messages.
final class MemoryClient: ByteChannel {
  private struct State {
    var files: [String: [UInt8]] = [:]
    var directories: Set<String> = []
    var freeByteCount: Int64 = 1 << 40
    var input: [UInt8] = []
    var received: [UInt8] = []
    var messages: [String] = []
    var isUploading = false
    var response: PropertyDictionary?
    /// The number of bytes that the device can still read before the stream ends.
    var budget = Int.max
    var sentCount = 0
    /// The offset of a byte that is changed on its way to the device.
    var changedOffset: Int?
  }

  private let state: Locked<State>

  /// Creates a client that has sent its greeting.
  ///
  /// - Parameters:
  ///   - files: The files in the client's folder, by path.
  ///   - freeByteCount: The free space of the client's disk.
  ///   - budget: The number of bytes after which the client's stream ends.
  ///   - changedOffset: The offset of a byte that is changed on its way to the device.
  init(
    files: [String: [UInt8]] = [:], freeByteCount: Int64 = 1 << 40, budget: Int = .max, changedOffset: Int? = nil
  ) {
    var state = State()
    state.changedOffset = changedOffset
    (state.files, state.freeByteCount, state.budget) = (files, freeByteCount, budget)
    state.input = Self.frame([.string("DLMessageVersionExchange"), .string("DLVersionsOk"), .integer(400)])
    state.input += Self.frame([
      .string("DLMessageProcessMessage"),
      .dictionary(["MessageName": .string("Hello"), "SupportedProtocolVersions": .array([.real(2.0), .real(2.1)])]),
    ])
    self.state = Locked(state)
  }

  static func frame(_ values: [PropertyValue]) -> [UInt8] {
    (try? PropertyListFrame.bytes(of: .array(values), as: .binary)) ?? []
  }

  var files: [String: [UInt8]] { state.withLock { $0.files } }
  var messages: [String] { state.withLock { $0.messages } }
  var response: PropertyDictionary? { state.withLock { $0.response } }
  /// The number of bytes that the device has read.
  var sentCount: Int { state.withLock { $0.sentCount } }

  /// Runs one request.
  ///
  /// - Returns: The error code of the device's response, or `nil` if there was no response.
  func run(_ request: PropertyDictionary, on device: ServedDevice) -> Int64? {
    state.withLock { state in
      state.input += Self.frame([.string("DLMessageProcessMessage"), .dictionary(request)])
    }
    try? BackupConversation(device, on: self).run()
    return response?["ErrorCode"]?.integerValue
  }

  func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    state.withLock { state in
      var bytes = Array(state.input.prefix(min(count, state.budget)))
      state.input.removeFirst(bytes.count)
      state.budget -= bytes.count
      if let offset = state.changedOffset, bytes.indices.contains(offset - state.sentCount) {
        bytes[offset - state.sentCount] ^= 0x15
      }
      state.sentCount += bytes.count
      return bytes
    }
  }

  func close() {}

  func write(_ bytes: [UInt8]) throws(WireError) {
    state.withLock { state in
      state.received += bytes
      while Self.processNext(&state) {}
    }
  }

  private static func number(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

  /// Processes the next message or file that was received.
  ///
  /// - Returns: Whether it was complete.
  private static func processNext(_ state: inout State) -> Bool {
    if state.isUploading { return receiveFile(&state) }
    guard state.received.count >= 4 else { return false }
    let count = number(state.received[0..<4])
    guard state.received.count >= 4 + count else { return false }
    let body = Array(state.received[4..<(4 + count)])
    state.received.removeFirst(4 + count)
    guard let array = (try? PropertyListFrame.value(of: body))?.arrayValue, let name = array.first?.stringValue else {
      return false
    }
    state.messages.append(name)
    respond(to: name, array, &state)
    return true
  }

  private static func receiveFile(_ state: inout State) -> Bool {
    var offset = 0
    func next(_ count: Int) -> ArraySlice<UInt8>? {
      guard state.received.count - offset >= count else { return nil }
      defer { offset += count }
      return state.received[offset..<(offset + count)]
    }
    func nextField() -> ArraySlice<UInt8>? { next(4).flatMap { next(number($0)) } }
    guard let first = next(4) else { return false }
    if number(first) == 0 {
      state.received.removeFirst(4)
      state.isUploading = false
      state.input += status(0)
      return true
    }
    offset = 0
    guard nextField() != nil, let path = nextField() else { return false }
    var content: [UInt8] = []
    while true {
      guard let block = nextField(), let code = block.first else { return false }
      if code == 0 { break }
      content += block.dropFirst()
    }
    state.received.removeFirst(offset)
    state.files[String(decoding: path, as: UTF8.self)] = content
    return true
  }

  private static func status(_ code: Int64, _ value: PropertyValue = .dictionary([:])) -> [UInt8] {
    frame([.string("DLMessageStatusResponse"), .integer(code), .string(DeviceLink.emptyParameter), value])
  }

  private static func respond(to name: String, _ array: [PropertyValue], _ state: inout State) {
    switch name {
    case "DLMessageProcessMessage":
      guard let response = array[1].dictionaryValue, response["ProtocolVersion"] == nil else { return }
      state.response = response
      state.input += frame([.string("DLMessageDisconnect"), .string(DeviceLink.emptyParameter)])
    case "DLMessageUploadFiles": state.isUploading = true
    case "DLMessageDownloadFiles":
      var isMissing = false
      for path in array[1].arrayValue?.compactMap(\.stringValue) ?? [] {
        state.input += DeviceLink.lengthAndBytes(Array(path.utf8))
        if let bytes = state.files[path] {
          if !bytes.isEmpty { state.input += DeviceLink.block(.data, bytes) }
          state.input += DeviceLink.block(.success)
        } else {
          isMissing = true
          state.input += DeviceLink.block(.localError, Array("No such file".utf8))
        }
      }
      state.input += [0, 0, 0, 0]
      state.input += status(isMissing ? HostStatus.several : 0)
    case "DLMessageGetFreeDiskSpace": state.input += status(0, .integer(state.freeByteCount))
    case "DLMessageCreateDirectory":
      state.directories.insert(array[1].stringValue ?? "")
      state.input += status(0)
    case "DLMessageMoveItems":
      for entry in array[1].dictionaryValue?.entries ?? [] {
        if let from = entry.key.stringValue, let to = entry.value.stringValue {
          state.files[to] = state.files.removeValue(forKey: from)
        }
      }
      state.input += status(0)
    case "DLMessageRemoveItems":
      for path in array[1].arrayValue?.compactMap(\.stringValue) ?? [] {
        state.files = state.files.filter { $0.key != path && !$0.key.hasPrefix(path + "/") }
      }
      state.input += status(0)
    case "DLMessageCopyItem":
      state.files[array[2].stringValue ?? ""] = state.files[array[1].stringValue ?? ""]
      state.input += status(0)
    default: break
    }
  }
}

@Suite("Backups by a client")
struct BackupTests {
  static func password(_ account: String, _ protection: ProtectionClass) -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.account] = .string(account)
    item.protection = protection
    item.secret = SensitiveBytes(copying: Array("hunter2".utf8))
    return item
  }

  private func phone() throws -> ServedPhone {
    try ServedPhone { (session) throws(KeyhaulError) in
      try session.add(Self.password("mail", .afterFirstUnlock))
      try session.add(Self.password("token", .whenUnlockedThisDeviceOnly))
    }
  }

  private func accounts(on phone: ServedPhone) throws -> [String] {
    try phone.served.device.withSession(.reading, verb: "look") { (session) throws(KeyhaulError) in
      try session.find(ItemQuery()).items.compactMap { $0.item[.account]?.stringValue }.sorted()
    }
  }

  private func revision(of phone: ServedPhone) throws -> String {
    try phone.served.device.withSession(.reading, verb: "look") { (session) throws(KeyhaulError) in
      session.record.revision
    }
  }

  private func request(_ name: String, _ phone: ServedPhone, _ others: PropertyDictionary = [:]) -> PropertyDictionary {
    var request: PropertyDictionary = [
      "MessageName": .string(name), "TargetIdentifier": .string(phone.served.udid),
    ]
    for entry in others.entries { request.entries.append(entry) }
    return request
  }

  /// Backs a phone up.
  ///
  /// - Returns: The client's folder.
  private func backup(_ phone: ServedPhone) throws -> [String: [UInt8]] {
    let client = MemoryClient()
    #expect(client.run(request("Backup", phone), on: phone.served) == 0)
    return client.files
  }

  @Test("A backup has exactly its four files, and its status is finished")
  func backup() throws {
    let phone = try phone()
    let files = try backup(phone)
    let udid = phone.served.udid
    #expect(
      Set(files.keys) == [
        "\(udid)/Manifest.plist", "\(udid)/Manifest.db", "\(udid)/Status.plist",
        "\(udid)/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e",
      ])
    let status = try BackupStatus(parsing: try #require(files["\(udid)/Status.plist"]))
    #expect(status.isFinished)
    #expect(try BackupManifest(parsing: try #require(files["\(udid)/Manifest.plist"])).isEncrypted == false)
  }

  @Test("The client receives the messages of a backup in the order of a real device")
  func order() throws {
    let phone = try phone()
    let client = MemoryClient()
    _ = client.run(request("Backup", phone), on: phone.served)
    #expect(
      client.messages.filter { $0 != "DLMessageCreateDirectory" } == [
        "DLMessageVersionExchange", "DLMessageDeviceReady", "DLMessageProcessMessage", "DLMessageDownloadFiles",
        "DLMessageGetFreeDiskSpace", "DLMessageUploadFiles", "DLMessageUploadFiles", "DLMessageUploadFiles",
        "DLMessageUploadFiles", "DLMessageMoveItems", "DLMessageMoveItems", "DLMessageUploadFiles",
        "DLMessageRemoveItems", "DLMessageUploadFiles", "DLMessageProcessMessage",
      ])
  }

  @Test("A backup is refused if only the reserve is free on the client's disk")
  func noSpace() throws {
    let phone = try phone()
    let client = MemoryClient(freeByteCount: 128 << 20)
    #expect(client.run(request("Backup", phone), on: phone.served) == 105)
    #expect(client.files.isEmpty)
  }

  @Test("A backup of a locked device fails with the code that clients show as locked")
  func locked() throws {
    let phone = try ServedPhone(passcode: "1234") { (session) throws(KeyhaulError) in
      try session.add(Self.password("mail", .whenUnlocked))
    }
    try phone.served.device.withSession(.writing, verb: "restart") { (session) throws(KeyhaulError) in
      try session.restart()
    }
    #expect(MemoryClient().run(request("Backup", phone), on: phone.served) == 208)
  }

  @Test("A restore to the same device restores all items, and one that ends after any byte changes nothing")
  func restore() throws {
    let phone = try phone()
    let files = try backup(phone)
    try phone.served.device.withSession(.writing, verb: "erase") { (session) throws(KeyhaulError) in
      try session.erase()
    }
    let before = try revision(of: phone)
    let complete = MemoryClient(files: files)
    // Measures the length of the conversation on another device.
    let twin = try self.phone()
    _ = complete.run(request("Restore", twin, ["SourceIdentifier": .string(phone.served.udid)]), on: twin.served)
    let length = complete.sentCount
    #expect(length > 10_000)
    // The last bytes only end the conversation, after the restore is committed.
    for budget in stride(from: 0, to: length - 200, by: max(1, length / 150)) {
      let client = MemoryClient(files: files, budget: budget)
      #expect(client.run(request("Restore", phone), on: phone.served) == nil)
      #expect(try revision(of: phone) == before, "after \(budget) bytes")
    }
    #expect(try accounts(on: phone) == [])
    #expect(MemoryClient(files: files).run(request("Restore", phone), on: phone.served) == 0)
    #expect(try accounts(on: phone) == ["mail", "token"])
  }

  @Test("A restore with a changed byte fails and changes nothing, or restores only items of the backup")
  func changedRestore() throws {
    let phone = try phone()
    let files = try backup(phone)
    let measured = MemoryClient(files: files)
    _ = measured.run(request("Restore", phone), on: phone.served)
    var before = try revision(of: phone)
    for offset in Cases.chosen(0..<measured.sentCount, quick: 150, seed: 52) {
      let client = MemoryClient(files: files, changedOffset: offset)
      let code = client.run(request("Restore", phone), on: phone.served)
      if code == 0 {
        #expect(Set(try accounts(on: phone)).isSubset(of: ["mail", "token"]), "byte \(offset)")
        before = try revision(of: phone)
      } else {
        #expect(try revision(of: phone) == before, "byte \(offset)")
      }
    }
    #expect(try accounts(on: phone) == ["mail", "token"])
  }

  @Test("A backup with a password restores to another device all items except this-device-only ones")
  func restoreElsewhere() throws {
    let old = try phone()
    let code = MemoryClient().run(
      request("ChangePassword", old, ["NewPassword": .string("horse")]), on: old.served)
    #expect(code == 0)
    #expect(old.served.isBackupEncrypted)
    let files = try backup(old)
    let new = try ServedPhone()
    let source = PropertyValue.string(old.served.udid)
    func restore(_ password: String?) -> Int64? {
      var options: PropertyDictionary = [:]
      options["Password"] = password.map { .string($0) }
      return MemoryClient(files: files).run(
        request("Restore", new, ["SourceIdentifier": source, "Options": .dictionary(options)]), on: new.served)
    }
    #expect(restore(nil) == 207)
    #expect(restore("wrong") == 207)
    #expect(try accounts(on: new) == [])
    #expect(!new.served.isBackupEncrypted)
    #expect(restore("horse") == 0)
    #expect(try accounts(on: new) == ["mail"])
    // The backup password is restored too, as on an iPhone.
    #expect(new.served.isBackupEncrypted)
  }

  @Test("A restore of an unfinished, missing or damaged backup is refused and changes nothing")
  func damagedBackups() throws {
    let phone = try phone()
    let files = try backup(phone)
    let udid = phone.served.udid
    let before = try revision(of: phone)
    var unfinished = files
    var status = try BackupStatus(parsing: try #require(files["\(udid)/Status.plist"]))
    status.snapshotState = "uploading"
    unfinished["\(udid)/Status.plist"] = try status.serialized()
    var truncated = files
    truncated["\(udid)/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"]?.removeLast(10)
    var empty = files
    empty["\(udid)/Manifest.plist"] = []
    for (name, damaged) in [("unfinished", unfinished), ("truncated", truncated), ("empty", empty), ("missing", [:])] {
      #expect(MemoryClient(files: damaged).run(request("Restore", phone), on: phone.served) == 205, "\(name)")
    }
    #expect(try revision(of: phone) == before)
  }

  @Test("The backup password can be set, changed and removed, but not with a wrong password")
  func passwords() throws {
    let phone = try phone()
    func change(_ old: String?, _ new: String?, files: [String: [UInt8]] = [:]) -> (Int64?, [String: [UInt8]]) {
      var values: PropertyDictionary = [:]
      values["OldPassword"] = old.map { .string($0) }
      values["NewPassword"] = new.map { .string($0) }
      let client = MemoryClient(files: files)
      return (client.run(request("ChangePassword", phone, values), on: phone.served), client.files)
    }
    #expect(change("x", "first").0 == 207)
    #expect(change(nil, "first").0 == 0)
    #expect(change(nil, "second").0 == 207)
    #expect(change("wrong", "second").0 == 207)
    let files = try backup(phone)
    let (code, changed) = change("first", "second", files: files)
    #expect(code == 0)
    // The existing backup now has the new password too.
    let folder = try TemporaryDirectory()
    for (path, bytes) in changed { try folder.write(bytes, to: path) }
    let path = folder.path(phone.served.udid)
    #expect(throws: (any Error).self) { try Backup(path: path, password: Secret(utf8: "first")) }
    #expect(try Backup(path: path, password: Secret(utf8: "second")).items.count == 2)
    #expect(change("wrong", nil).0 == 207)
    #expect(phone.served.isBackupEncrypted)
    // A password that is too long or not text does not count as none.
    #expect(change("second", String(repeating: "a", count: 1_025)).0 == 1)
    let dataPassword: PropertyDictionary = ["OldPassword": .string("second"), "NewPassword": .data([0x61])]
    #expect(MemoryClient().run(request("ChangePassword", phone, dataPassword), on: phone.served) == 1)
    #expect(phone.served.isBackupEncrypted)
    #expect(change("second", nil).0 == 0)
    #expect(!phone.served.isBackupEncrypted)
  }

  @Test("The observers of the backup domain are notified when the password changes")
  func notification() throws {
    let phone = try phone()
    let lines = LineRecorder()
    let observer = NotificationHub.Observer { lines.add($0) }
    observer.observe(NotificationProxy.backupDomainChanged)
    phone.served.notifications.add(observer)
    _ = MemoryClient().run(request("ChangePassword", phone, ["NewPassword": .string("a")]), on: phone.served)
    #expect(lines.all == [NotificationProxy.backupDomainChanged])
  }

  @Test("The device reads information, a list and unpacked files from the client's backup")
  func reading() throws {
    let phone = try phone()
    let udid = phone.served.udid
    let files = try backup(phone)
    let information = MemoryClient(files: files)
    #expect(information.run(request("Info", phone), on: phone.served) == 0)
    #expect(information.response?["Content"]?.stringValue?.contains("KeychainDomain") == true)
    let list = MemoryClient(files: files)
    #expect(list.run(request("List", phone), on: phone.served) == 0)
    #expect(list.response?["Content"]?.stringValue?.contains("51a4616e576dd33cd2abadfea874eb8ff246bf0e") == true)
    let unback = MemoryClient(files: files)
    #expect(unback.run(request("Unback", phone), on: phone.served) == 0)
    let path = "_unback_/\(udid)/KeychainDomain/keychain-backup.plist"
    #expect(unback.files[path] == files["\(udid)/51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"])
    let extract = MemoryClient(files: files)
    let selection: PropertyDictionary = [
      "DomainName": .string("KeychainDomain"), "RelativePath": .string("keychain-backup.plist"),
    ]
    #expect(extract.run(request("Extract", phone, selection), on: phone.served) == 0)
    #expect(extract.files["keychain-backup.plist"] == unback.files[path])
    let missing: PropertyDictionary = ["DomainName": .string("KeychainDomain"), "RelativePath": .string("other")]
    #expect(MemoryClient(files: files).run(request("Extract", phone, missing), on: phone.served) == 4)
  }

  @Test("Files of an encrypted backup are decrypted and unpacked only with its password")
  func readingEncrypted() throws {
    let phone = try phone()
    _ = MemoryClient().run(request("ChangePassword", phone, ["NewPassword": .string("horse")]), on: phone.served)
    let files = try backup(phone)
    #expect(MemoryClient(files: files).run(request("Unback", phone), on: phone.served) == 207)
    let client = MemoryClient(files: files)
    #expect(client.run(request("Unback", phone, ["Password": .string("horse")]), on: phone.served) == 0)
    let bytes = try #require(
      client.files["_unback_/\(phone.served.udid)/KeychainDomain/keychain-backup.plist"])
    #expect((try? PropertyListFrame.value(of: bytes))?.dictionaryValue?["genp"] != nil)
  }

  @Test(
    "An invalid identifier is never used as a path",
    arguments: ["..", "../../../../../../etc/passwd", "a/b", "", "55A16284-5725385955A4A8EF/..", "x\u{0}y"])
  func hostileIdentifiers(text: String) throws {
    let phone = try phone()
    for key in ["SourceIdentifier", "TargetIdentifier"] {
      for name in ["Restore", "Info", "Unback", "Backup"] {
        var values = request(name, phone)
        values[key] = .string(text)
        let client = MemoryClient()
        #expect(client.run(values, on: phone.served) == 1, "\(name)")
        #expect(!client.messages.contains("DLMessageDownloadFiles"))
      }
    }
  }

  @Test(
    "A request that a virtual device does not support is refused",
    arguments: ["EraseDevice", "EnableCloudBackup", "Frobnicate"])
  func refused(name: String) throws {
    let phone = try phone()
    #expect(MemoryClient().run(request(name, phone), on: phone.served) == 1)
    #expect(try accounts(on: phone) == ["mail", "token"])
  }

  @Test("An interrupted restore leaves no files in the device's folder")
  func staging() throws {
    let phone = try phone()
    let files = try backup(phone)
    _ = MemoryClient(files: files, budget: 9_000).run(request("Restore", phone), on: phone.served)
    let names = try FileManager.default.contentsOfDirectory(atPath: phone.served.device.directory)
    #expect(!names.contains("staged"))
  }
}

/// Starts only the first thread, which accepts connections.
private final class OneThread: Sendable {
  private let count = Locked(0)

  func start(_ work: @escaping @Sendable () -> Void, _ ended: @escaping @Sendable () -> Void) -> Bool {
    let number = count.withLock { count in
      count += 1
      return count
    }
    return number == 1 && SecureThread.start(work, ended: ended)
  }
}

/// A client that sends some bytes and then nothing.
private final class SilentChannel: ByteChannel {
  private let input: Locked<[UInt8]>
  private let lastLimit = Locked<Duration?>(nil)

  init(_ bytes: [UInt8]) { input = Locked(bytes) }

  /// The time limit of the read that timed out, or `nil` if it had none.
  var limit: Duration? { lastLimit.withLock { $0 } }

  func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    let bytes = input.withLock { input in
      let bytes = Array(input.prefix(count))
      input.removeFirst(bytes.count)
      return bytes
    }
    guard bytes.isEmpty else { return bytes }
    lastLimit.withLock { $0 = limit }
    throw .timedOut
  }

  func write(_ bytes: [UInt8]) throws(WireError) {}
  func close() {}
}

@Suite("Malicious clients")
struct MaliciousClientTests {
  @Test("A silent client without a session is disconnected after at most a minute, wherever it stops")
  func silence() throws {
    let phone = try ServedPhone()
    let server = try DeviceServer([phone.served], at: .loopback(port: 0, usesIPv6: false)) { _ in }
    let connect = try ProtocolVector.named("mux.Connect.lockdown.request").bytes
    let query = try ProtocolVector.named("lockdown.QueryType.request").bytes
    let sent = connect + query
    for count in 0...sent.count {
      let channel = SilentChannel(Array(sent.prefix(count)))
      server.serve(channel)
      let limit = try #require(channel.limit, "after \(count) bytes")
      #expect(limit > .zero && limit <= .seconds(60), "after \(count) bytes")
    }
  }

  @Test("A length of 4 GiB is refused at each layer before memory is allocated")
  func hugeLengths() {
    let huge: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF]
    #expect(throws: WireError.self) { try PropertyListFrame.small.read(from: ScriptedChannel(huge), within: nil) }
    #expect(throws: WireError.self) { try PropertyListFrame.deviceLink.read(from: ScriptedChannel(huge), within: nil) }
    #expect(throws: WireError.self) {
      try MultiplexerPacket.read(from: ScriptedChannel(huge + [UInt8](repeating: 0, count: 12)), within: nil)
    }
    #expect(throws: WireError.self) {
      try FileConduitPacket.read(
        from: ScriptedChannel(Array("CFA6LPAA".utf8) + [UInt8](repeating: 0xFF, count: 32)))
    }
    #expect(throws: BackupServiceError.self) {
      try DeviceLink(ScriptedChannel(huge)).receiveFile(named: "a", atMost: 1) { _ in }
    }
    #expect(throws: BackupServiceError.self) {
      let name = DeviceLink.lengthAndBytes([97])
      return try DeviceLink(ScriptedChannel(name + huge)).receiveFile(named: "a", atMost: 1) { _ in }
    }
  }

  @Test("AFC paths cannot leave the shared tree, whose size is limited")
  func conduitPaths() {
    #expect(SharedFiles.normalized(Array("/../../etc/passwd".utf8)) == "/etc/passwd")
    #expect(SharedFiles.normalized(Array("a/./b/../c".utf8)) == "/a/c")
    #expect(SharedFiles.normalized([UInt8](repeating: 97, count: 1025)) == nil)
    #expect(SharedFiles.normalized([0xFF]) == nil)
    let files = SharedFiles()
    let directoryCount = (0..<100).count { files.makeDirectory("/\($0)") }
    #expect(directoryCount == 63)
    #expect(!files.makeFile("/0/x", truncates: true))
    #expect(files.remove("/5"))
    #expect(files.makeFile("/0/x", truncates: true))
    #expect(!files.write([1], to: "/0/x", at: 16 << 20))
    #expect(files.write([1], to: "/0/x", at: (16 << 20) - 1))
    #expect(!files.remove("/0"))
    #expect(!files.remove("/"))
  }

  @Test("A connection without a thread is closed and logged")
  func refusedThreads() throws {
    let phone = try ServedPhone()
    let lines = LineRecorder()
    let starter = OneThread()
    let server = try DeviceServer(
      [phone.served], at: .loopback(port: 0, usesIPv6: false), startThread: { starter.start($0, $1) },
      log: { lines.add($0) })
    #expect(server.start())
    let port = try #require(UInt16(server.address.split(separator: ":").last ?? ""))
    let socket = try StreamSocket(loopbackPort: port)
    #expect(try socket.read(upTo: 1, within: .seconds(10)).isEmpty)
    #expect(server.stop())
    #expect(lines.all.contains { $0.contains("allows no more threads") })
  }
}
