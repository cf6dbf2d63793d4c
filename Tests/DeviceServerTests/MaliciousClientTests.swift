import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

/// Starts only the first thread, which accepts connections.
private final class SingleThreadStarter: Sendable {
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
    let messages = connect + query
    for count in 0...messages.count {
      let channel = SilentChannel(Array(messages.prefix(count)))
      server.serve(channel)
      let limit = try #require(channel.limit, "after \(count) bytes")
      #expect(limit > .zero && limit <= .seconds(60), "after \(count) bytes")
    }
  }

  @Test("The largest length that a field can hold is refused at each layer")
  func hugeLengths() {
    let length: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF]
    #expect(throws: WireError(.overLimit, "a frame of 4294967295 bytes; at most 1048576 are accepted")) {
      try PropertyListFrame.small.read(from: ScriptedChannel(length), within: nil)
    }
    #expect(throws: WireError(.overLimit, "a frame of 4294967295 bytes; at most 67108864 are accepted")) {
      try PropertyListFrame.deviceLink.read(from: ScriptedChannel(length), within: nil)
    }
    #expect(throws: WireError(.overLimit, "a usbmuxd packet of 4294967295 bytes; at most 1048576 are accepted")) {
      try MultiplexerPacket.read(from: ScriptedChannel(length + [UInt8](repeating: 0, count: 12)), within: nil)
    }
    #expect(throws: WireError(.overLimit, "an AFC packet is longer than 17825792 bytes")) {
      try FileConduitPacket.read(
        from: ScriptedChannel(Array("CFA6LPAA".utf8) + [UInt8](repeating: 0xFF, count: 32)))
    }
    #expect(throws: DeviceLink.protocolError("a file name of 4294967295 bytes")) {
      try DeviceLink(ScriptedChannel(length)).receiveFile(named: "a", atMost: 1) { _ in }
    }
    #expect(throws: DeviceLink.protocolError("a block of 4294967295 bytes")) {
      let name = DeviceLink.lengthAndBytes(Array("a".utf8))
      return try DeviceLink(ScriptedChannel(name + length)).receiveFile(named: "a", atMost: 1) { _ in }
    }
  }

  @Test("AFC paths cannot leave the shared tree, and must be UTF-8 of at most 1,024 bytes")
  func conduitPaths() {
    #expect(SharedFiles.normalized(Array("/../../etc/passwd".utf8)) == "/etc/passwd")
    #expect(SharedFiles.normalized(Array("a/./b/../c".utf8)) == "/a/c")
    #expect(SharedFiles.normalized([UInt8](repeating: 97, count: 1025)) == nil)
    #expect(SharedFiles.normalized([0xFF]) == nil)
  }

  @Test("The shared tree has at most 64 entries including its root, and files of at most 16 MiB")
  func sharedTreeLimits() {
    let files = SharedFiles()
    let directoryCount = (0..<100).count { files.makeDirectory("/\($0)") }
    #expect(directoryCount == 63)
    #expect(!files.makeFile("/0/x", truncates: true))
    #expect(files.remove("/5"))
    #expect(files.makeFile("/0/x", truncates: true))
    let maximumByteCount = 16 << 20
    #expect(!files.write([1], to: "/0/x", at: maximumByteCount))
    #expect(files.write([1], to: "/0/x", at: maximumByteCount - 1))
  }

  @Test("The root of the shared tree, and a directory that is not empty, cannot be removed")
  func removedDirectories() {
    let files = SharedFiles()
    #expect(files.makeDirectory("/0") && files.makeFile("/0/x", truncates: true))
    #expect(!files.remove("/0"))
    #expect(!files.remove("/"))
  }

  @Test("A connection for which no thread can be started is closed and logged")
  func refusedThreads() throws {
    let phone = try ServedPhone()
    let lines = LineRecorder()
    let starter = SingleThreadStarter()
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
