import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

@Suite("Captured messages of backup clients")
struct VectorTests {
  @Test("The vectors contain all 114 captured messages")
  func count() {
    #expect(ProtocolVector.all.count == 114)
  }

  @Test(
    "A captured usbmuxd packet has the content in its vector",
    arguments: ProtocolVector.all.filter { $0.layer == "usbmuxd" })
  func multiplexer(vector: ProtocolVector) throws {
    let channel = ScriptedChannel(vector.bytes)
    let packet = try #require(try MultiplexerPacket.read(from: channel, within: nil))
    let value = try PropertyListFrame.value(of: packet.body)
    #expect(packet.version == 1)
    #expect(channel.remainingCount == 0)
    #expect(ProtocolVector.comparable(of: value) == vector.decoded)
    let dictionary = try #require(value.dictionaryValue)
    // The same content, written by Keyhaul, is read as the same packet.
    let bytes = try MultiplexerPacket.bytes(of: dictionary, tag: packet.tag)
    let reread = try #require(try MultiplexerPacket.read(from: ScriptedChannel(bytes), within: nil))
    #expect(reread.tag == packet.tag)
    #expect(try PropertyListFrame.value(of: reread.body) == value)
    if vector.isFromClient { #expect(MultiplexerRequest(dictionary) != .other) }
  }

  private static let framedLayers: Set = [
    "lockdown", "notification_proxy", "installation_proxy", "diagnostics_relay", "devicelink",
  ]

  @Test(
    "A captured frame has the content in its vector, and is written with the same content",
    arguments: ProtocolVector.all.filter { framedLayers.contains($0.layer) })
  func frames(vector: ProtocolVector) throws {
    let channel = ScriptedChannel(vector.bytes)
    let value = try #require(try PropertyListFrame.deviceLink.read(from: channel, within: nil))
    #expect(channel.remainingCount == 0)
    #expect(ProtocolVector.comparable(of: value) == vector.decoded)
    let encoding = vector.layer == "devicelink" ? PropertyListFrame.Encoding.binary : .xml
    let bytes = try PropertyListFrame.bytes(of: value, as: encoding)
    let reread = try #require(try PropertyListFrame.deviceLink.read(from: ScriptedChannel(bytes), within: nil))
    #expect(ProtocolVector.comparable(of: reread) == vector.decoded)
  }

  @Test(
    "A captured AFC packet is read and written again byte for byte",
    arguments: ProtocolVector.all.filter { $0.layer == "afc" })
  func fileConduit(vector: ProtocolVector) throws {
    let channel = ScriptedChannel(vector.bytes)
    let packet = try #require(try FileConduitPacket.read(from: channel))
    #expect(channel.remainingCount == 0)
    #expect(packet.bytes == vector.bytes)
  }

  @Test("Every captured message belongs to a tested layer")
  func layers() {
    let layers = Set(ProtocolVector.all.map(\.layer))
    #expect(layers == Self.framedLayers.union(["usbmuxd", "afc", "devicelink-files"]))
  }

  @Test("The three captured encodings of the status −13 are read as −13")
  func statusCodes() throws {
    for name in ["dl.DownloadFiles.missing.old.answer", "dl.DownloadFiles.missing.new.answer", "dl.status.multi.pmd"] {
      let channel = ScriptedChannel(try ProtocolVector.named(name).bytes)
      let message = try #require(try DeviceLink(channel).receive(within: nil))
      let status = try #require(HostStatus(message.elements))
      #expect(status.code == HostStatus.several, "\(name)")
    }
  }

  @Test("A port number is read with its two bytes exchanged, because clients send it in network byte order")
  func portNumbers() throws {
    for entry in try #require(try ProtocolVector.file()["portNumbers"] as? [[String: Int]]) {
      let port = try #require(entry["port"])
      let number = try #require(entry["PortNumber"])
      let request = MultiplexerRequest([
        "MessageType": .string("Connect"), "DeviceID": .integer(7), "PortNumber": .integer(Int64(number)),
      ])
      #expect(request == .connect(device: 7, port: port))
    }
  }

  @Test("The server's own messages have the content that clients accepted")
  func ownMessages() throws {
    func check(_ message: PropertyValue, _ name: String) throws {
      #expect(try ProtocolVector.comparable(of: message) == ProtocolVector.named(name).decoded, "\(name)")
    }
    try check(.dictionary(MultiplexerResult.done.answer), "mux.Connect.lockdown.answer")
    try check(.dictionary(MultiplexerResult.noDevice.answer), "mux.ReadPairRecord.missing.answer")
    try check(.dictionary(NotificationProxy.relay("com.apple.LocalAuthentication.ui.presented")), "np.Relay")
    let applications = PropertyListServices.installationProxy(
      ["Command": .string("Browse")], applications: ["org.example.chat"])
    try #require(applications.count == 2)
    try check(.dictionary(applications[0]), "ip.Browse.answer")
    try check(.dictionary(applications[1]), "ip.Browse.end")
    let diagnostics = PropertyListServices.diagnostics([
      "Request": .string("MobileGestalt"), "MobileGestaltKeys": .array([.string("PasswordConfigured")]),
    ])
    try check(.dictionary(diagnostics.answer), "diag.MobileGestalt.answer")
    let success = DeviceLink.response(failure: nil)
    try check(.array([.string("DLMessageProcessMessage"), success]), "dl.Response.ok")
    let wrongPassword = DeviceLink.response(failure: BackupFailure(.wrongPassword, BackupFailure.wrongPassword))
    try check(.array([.string("DLMessageProcessMessage"), wrongPassword]), "dl.Response.207")
  }

  private func fileConduitPacket(_ name: String) throws -> FileConduitPacket {
    try #require(try FileConduitPacket.read(from: ScriptedChannel(ProtocolVector.named(name).bytes)))
  }

  @Test("AFC answers the captured requests as the captured server did")
  func fileConduitAnswers() throws {
    let conduit = FileConduit(SharedFiles())
    for name in [
      "afc.open.lockfile", "afc.lock", "afc.info.missing", "afc.unlock", "afc.close", "afc.mkdir", "afc.open.write",
      "afc.write",
    ] {
      let request = try fileConduitPacket(name + ".request")
      let answer = try ProtocolVector.named(name + ".answer").bytes
      #expect(conduit.answer(to: request).bytes == answer, "\(name)")
    }
  }

  @Test("A file lock of another connection is busy until that connection ends")
  func busyLock() throws {
    let files = SharedFiles()
    let open = try fileConduitPacket("afc.open.lockfile.request")
    let lock = try fileConduitPacket("afc.lock.request")
    let lockedAnswer = try ProtocolVector.named("afc.lock.answer").bytes
    let busyAnswer = try ProtocolVector.named("afc.lock.busy.answer").bytes
    let connection = FileConduit(files)
    _ = connection.answer(to: open)
    do {
      let connectionWithLock = FileConduit(files)
      _ = connectionWithLock.answer(to: open)
      #expect(connectionWithLock.answer(to: lock).bytes == lockedAnswer)
      #expect(connection.answer(to: lock).bytes == busyAnswer)
    }
    #expect(connection.answer(to: lock).bytes == lockedAnswer)
  }
}

@Suite("Captured streams of files")
struct FileStreamTests {
  private static let path = "55A16284-5725385955A4A8EF/Status.plist"

  private func bytes(of name: String) throws -> [UInt8] { try ProtocolVector.named(name).bytes }

  @Test("A file is uploaded with the bytes that clients accepted")
  func upload() throws {
    let vector = try ProtocolVector.named("dl.UploadFiles.files")
    let stream = vector.bytes
    // Two names, then one block of data, which begins with its length in four bytes and its code.
    let blockStart = vector.parts[0].byteCount + vector.parts[1].byteCount
    let blockEnd = blockStart + vector.parts[2].byteCount
    let content = Array(stream[(blockStart + 5)..<blockEnd])
    let channel = ScriptedChannel(try bytes(of: "dl.UploadFiles.answer"))
    let file = DeviceLink.OutgoingFile(
      content, displayName: "/.ba/Status.plist", to: Self.path)
    try DeviceLink(channel).upload([file], progress: 1)
    // The output is a message, then the stream.
    #expect(channel.output.suffix(stream.count) == stream[...])
    let messageChannel = ScriptedChannel(Array(channel.output.dropLast(stream.count)))
    let value = try #require(try PropertyListFrame.deviceLink.read(from: messageChannel, within: nil))
    #expect(ProtocolVector.comparable(of: value) == (try ProtocolVector.named("dl.UploadFiles.request").decoded))
  }

  @Test(
    "A file that the client lacks is reported as missing, regardless of how the stream is split",
    arguments: ["old", "new"])
  func missingFile(client: String) throws {
    let stream = try bytes(of: "dl.DownloadFiles.missing.\(client).files")
    let answer = try bytes(of: "dl.DownloadFiles.missing.\(client).answer")
    for maximumReadCount in 1...(stream.count + answer.count) {
      let channel = ScriptedChannel(stream + answer, maximumReadCount: maximumReadCount)
      let bytes = try DeviceLink(channel).downloadBytes(Self.path, atMost: 1 << 20)
      #expect(bytes == nil)
      #expect(channel.remainingCount == 0)
    }
  }

  @Test("A file that the client has is read completely, regardless of how the stream is split")
  func completeFile() throws {
    let stream = try bytes(of: "dl.DownloadFiles.found.files")
    let answer = try bytes(of: "dl.UploadFiles.answer")
    for maximumReadCount in 1...(stream.count + answer.count) {
      let channel = ScriptedChannel(stream + answer, maximumReadCount: maximumReadCount)
      let bytes = try DeviceLink(channel).downloadBytes(Self.path, atMost: 1 << 20)
      #expect(bytes?.starts(with: Array("bplist00".utf8)) == true)
      // The size of the captured file.
      #expect(bytes?.count == 58)
    }
  }

  @Test("A stream that ends before its last byte is an error")
  func truncatedStream() throws {
    let stream = try bytes(of: "dl.DownloadFiles.found.files") + bytes(of: "dl.UploadFiles.answer")
    for count in 0..<stream.count {
      let channel = ScriptedChannel(Array(stream.prefix(count)))
      #expect(throws: BackupServiceError.self) {
        try DeviceLink(channel).downloadBytes(Self.path, atMost: 1 << 20)
      }
    }
  }

  @Test("A file that was not requested or exceeds its limit ends the conversation")
  func unrequestedFiles() throws {
    let stream = try bytes(of: "dl.DownloadFiles.found.files") + bytes(of: "dl.UploadFiles.answer")
    #expect(throws: DeviceLink.protocolError("the client sent another file")) {
      try DeviceLink(ScriptedChannel(stream)).downloadBytes("55A16284-5725385955A4A8EF/Manifest.pl", atMost: 1 << 20)
    }
    // The captured file has 58 bytes.
    #expect(throws: DeviceLink.protocolError("a file of more than 57 bytes")) {
      try DeviceLink(ScriptedChannel(stream)).downloadBytes(Self.path, atMost: 57)
    }
    let file = try DeviceLink(ScriptedChannel(stream)).downloadBytes(Self.path, atMost: 58)
    #expect(file?.count == 58)
  }

  @Test(
    "A captured stream of files is written again byte for byte",
    arguments: ProtocolVector.all.filter { $0.layer == "devicelink-files" })
  func writtenAgain(vector: ProtocolVector) throws {
    // Without parts, the vector is one block.
    let parts = vector.parts.isEmpty ? [("block", vector.bytes.count)] : vector.parts
    var output: [UInt8] = []
    var remaining = vector.bytes[...]
    for (name, byteCount) in parts {
      // Each part begins with its length in four bytes.
      let content = Array(remaining.prefix(byteCount).dropFirst(4))
      remaining = remaining.dropFirst(byteCount)
      if name == "end" {
        output += bigEndianBytes(UInt32(0))
      } else if name.hasPrefix("name") {
        output += DeviceLink.lengthAndBytes(content)
      } else {
        let code = try #require(content.first.flatMap(DeviceLink.BlockCode.init(rawValue:)))
        output += DeviceLink.block(code, Array(content.dropFirst()))
      }
    }
    #expect(remaining.isEmpty)
    #expect(output == vector.bytes)
  }

  @Test("A block that only a device sends ends the conversation")
  func remoteError() throws {
    let name = DeviceLink.lengthAndBytes(Array("U/a".utf8))
    let channel = ScriptedChannel(name + (try bytes(of: "dl.file.remoteError")))
    #expect(throws: DeviceLink.protocolError("a block that only a device sends")) {
      try DeviceLink(channel).receiveFile(named: "U/a", atMost: 100) { _ in }
    }
    #expect(DeviceLink.block(.remoteError, Array("Input/output error".utf8)) == (try bytes(of: "dl.file.remoteError")))
  }
}
