import Basics

/// A packet of AFC, Apple's file conduit: a header of five numbers, then data.
///
/// Source: libimobiledevice, `afc.h`.
package struct FileConduitPacket: Sendable, Hashable {
  /// An identifier that the answer repeats.
  package var number: UInt64
  package var operation: UInt64
  /// The fixed part after the header: paths, handles and numbers.
  package var head: [UInt8]
  /// The bytes to write, or none.
  package var payload: [UInt8] = []

  private static let magic = Array("CFA6LPAA".utf8)
  private static let headerByteCount = 40
  private static let maximumByteCount = 17 << 20

  package init(number: UInt64, operation: UInt64, head: [UInt8], payload: [UInt8] = []) {
    (self.number, self.operation, self.head, self.payload) = (number, operation, head, payload)
  }

  /// Reads one packet.
  ///
  /// - Returns: `nil` if the stream ends before the packet.
  /// - Throws: `.malformed` for another magic or lengths that contradict each other, `.overLimit`.
  package static func read(from channel: any ByteChannel) throws(WireError) -> FileConduitPacket? {
    guard let header = try channel.readIfOpen(headerByteCount, within: nil) else { return nil }
    guard header.starts(with: magic) else { throw WireError(.malformed, "an AFC packet without its magic") }
    func number(_ index: Int) -> UInt64 { littleEndianNumber(header, at: index * 8) ?? 0 }
    guard let packetByteCount = Int(exactly: number(1)), let fixedByteCount = Int(exactly: number(2)),
      packetByteCount <= maximumByteCount
    else {
      throw WireError(.overLimit, "an AFC packet is longer than \(maximumByteCount) bytes")
    }
    guard fixedByteCount >= headerByteCount, fixedByteCount <= packetByteCount else {
      throw WireError(.malformed, "the lengths of an AFC packet contradict each other")
    }
    let body = try channel.read(exactly: packetByteCount - headerByteCount, within: .seconds(60))
    let headByteCount = fixedByteCount - headerByteCount
    return FileConduitPacket(
      number: number(3), operation: number(4), head: Array(body[..<headByteCount]),
      payload: Array(body[headByteCount...]))
  }

  /// The packet's bytes.
  package var bytes: [UInt8] {
    let fixedByteCount = UInt64(Self.headerByteCount + head.count)
    return Self.magic
      + [fixedByteCount + UInt64(payload.count), fixedByteCount, number, operation].flatMap(littleEndianBytes) + head
      + payload
  }
}

func littleEndianBytes(_ number: UInt64) -> [UInt8] { bigEndianBytes(number).reversed() }

/// Returns the number of 64 bits at an offset; `nil` if the bytes end before.
func littleEndianNumber(_ bytes: [UInt8], at offset: Int) -> UInt64? {
  guard offset >= 0, offset <= bytes.count - 8 else { return nil }
  return bigEndianInteger(bytes[offset..<(offset + 8)].reversed())
}

/// AFC on the shared files of a device, with the operations that backup clients use.
package final class FileConduit {
  private enum Operation: UInt64 {
    case status = 1
    case data = 2
    case list = 3
    case remove = 8
    case makeDirectory = 9
    case fileInfo = 10
    case deviceInfo = 11
    case open = 13
    case opened = 14
    case read = 15
    case write = 16
    case seek = 17
    case tell = 18
    case position = 19
    case close = 20
    case lock = 27
  }

  private enum Status: UInt64 {
    case ok = 0
    case invalidArgument = 7
    case notFound = 8
    case denied = 10
    case unsupported = 15
    case wouldBlock = 19
  }

  private struct OpenFile {
    let path: String
    var offset = 0
    let canRead: Bool
    let canWrite: Bool
    let appends: Bool
  }

  private static let maximumOpenCount = 16
  private static let maximumReadByteCount: UInt64 = 4 << 20
  private let files: SharedFiles
  private var handles: [UInt64: OpenFile] = [:]
  private var lastHandle: UInt64 = 0

  package init(_ files: SharedFiles) { self.files = files }

  deinit { files.unlock(for: self) }

  /// Serves a connection until the client ends it. Its lock is released then.
  ///
  /// - Parameters:
  ///   - channel: The connection.
  ///   - log: Receives the name of each request.
  /// - Throws: The errors of the channel; `.malformed` for bytes that are not AFC.
  package func run(on channel: any ByteChannel, logging log: (String) -> Void = { _ in }) throws(WireError) {
    defer { files.unlock(for: self) }
    while let packet = try FileConduitPacket.read(from: channel) {
      log(Operation(rawValue: packet.operation).map { "\($0)" } ?? "an unknown request")
      try channel.write(answer(to: packet).bytes)
    }
  }

  /// Carries out a request.
  package func answer(to packet: FileConduitPacket) -> FileConduitPacket {
    let (operation, bytes) = result(of: packet)
    // Data follows the fixed part of an answer.
    guard operation == .data else {
      return FileConduitPacket(number: packet.number, operation: operation.rawValue, head: bytes)
    }
    return FileConduitPacket(number: packet.number, operation: operation.rawValue, head: [], payload: bytes)
  }

  private func status(_ status: Status) -> (Operation, [UInt8]) { (.status, littleEndianBytes(status.rawValue)) }

  private func result(of packet: FileConduitPacket) -> (Operation, [UInt8]) {
    let head = packet.head
    func path(at offset: Int = 0) -> String? {
      guard offset < head.count else { return nil }
      return SharedFiles.normalized(head[offset...].prefix { $0 != 0 })
    }
    switch Operation(rawValue: packet.operation) {
    case .fileInfo:
      guard let path = path() else { return status(.invalidArgument) }
      guard let node = files.node(at: path) else { return status(.notFound) }
      let time = "1000000000000000000"
      return (
        .data,
        Self.list([
          "st_size", String(node.bytes.count), "st_blocks", String((node.bytes.count + 511) / 512), "st_nlink", "1",
          "st_ifmt", node.isDirectory ? "S_IFDIR" : "S_IFREG", "st_mtime", time, "st_birthtime", time,
        ])
      )
    case .deviceInfo:
      return (
        .data,
        Self.list([
          "Model", "iPhone", "FSTotalBytes", "64000000000", "FSFreeBytes", "32000000000", "FSBlockSize", "4096",
        ])
      )
    case .list:
      guard let path = path() else { return status(.invalidArgument) }
      guard let names = files.names(in: path) else { return status(.notFound) }
      return (.data, Self.list([".", ".."] + names))
    case .makeDirectory:
      guard let path = path() else { return status(.invalidArgument) }
      return status(files.makeDirectory(path) ? .ok : .denied)
    case .remove:
      guard let path = path() else { return status(.invalidArgument) }
      guard files.node(at: path) != nil else { return status(.notFound) }
      return status(files.remove(path) ? .ok : .denied)
    case .open: return open(mode: littleEndianNumber(head, at: 0), path: path(at: 8))
    case .close:
      guard let handle = littleEndianNumber(head, at: 0), handles.removeValue(forKey: handle) != nil else {
        return status(.invalidArgument)
      }
      return status(.ok)
    case .read: return read(head)
    case .write:
      guard let handle = littleEndianNumber(head, at: 0), var file = handles[handle], file.canWrite else {
        return status(.invalidArgument)
      }
      if file.appends { file.offset = files.node(at: file.path)?.bytes.count ?? 0 }
      guard files.write(packet.payload, to: file.path, at: file.offset) else { return status(.denied) }
      file.offset += packet.payload.count
      handles[handle] = file
      return status(.ok)
    case .seek:
      guard let handle = littleEndianNumber(head, at: 0), var file = handles[handle],
        littleEndianNumber(head, at: 8) == 0,
        let offset = littleEndianNumber(head, at: 16).flatMap({ Int(exactly: $0) }), offset <= 1 << 30
      else { return status(.invalidArgument) }
      file.offset = offset
      handles[handle] = file
      return status(.ok)
    case .tell:
      guard let handle = littleEndianNumber(head, at: 0), let file = handles[handle] else {
        return status(.invalidArgument)
      }
      return (.position, littleEndianBytes(UInt64(file.offset)))
    case .lock: return lock(head)
    case .status, .data, .opened, .position, nil: return status(.unsupported)
    }
  }

  /// The modes in which a client opens a file. Those of `fopen` are r, r+, w, w+, a and a+.
  private enum OpenMode: UInt64 {
    case read = 1
    case readAndWrite = 2
    case truncate = 3
    case truncateAndRead = 4
    case append = 5
    case appendAndRead = 6
  }

  private func open(mode: UInt64?, path: String?) -> (Operation, [UInt8]) {
    guard let mode = mode.flatMap(OpenMode.init(rawValue:)), let path else { return status(.invalidArgument) }
    guard handles.count < Self.maximumOpenCount else { return status(.denied) }
    if mode == .read {
      guard let node = files.node(at: path), !node.isDirectory else { return status(.notFound) }
    } else {
      let truncates = mode == .truncate || mode == .truncateAndRead
      guard files.makeFile(path, truncates: truncates) else { return status(.denied) }
    }
    lastHandle += 1
    handles[lastHandle] = OpenFile(
      path: path, canRead: mode != .truncate && mode != .append, canWrite: mode != .read,
      appends: mode == .append || mode == .appendAndRead)
    return (.opened, littleEndianBytes(lastHandle))
  }

  private func read(_ head: [UInt8]) -> (Operation, [UInt8]) {
    guard let handle = littleEndianNumber(head, at: 0), let count = littleEndianNumber(head, at: 8),
      var file = handles[handle], file.canRead, let node = files.node(at: file.path)
    else { return status(.invalidArgument) }
    let bytes = node.bytes.dropFirst(file.offset).prefix(Int(min(count, Self.maximumReadByteCount)))
    file.offset += bytes.count
    handles[handle] = file
    return (.data, Array(bytes))
  }

  private func lock(_ head: [UInt8]) -> (Operation, [UInt8]) {
    guard let handle = littleEndianNumber(head, at: 0), handles[handle] != nil,
      let operation = littleEndianNumber(head, at: 8)
    else { return status(.invalidArgument) }
    // The operations of flock(2) with the flag for not waiting: 5 and 6 lock (shared, exclusive), 12 unlocks.
    switch operation {
    case 5, 6: return status(files.lock(for: self) ? .ok : .wouldBlock)
    case 12:
      files.unlock(for: self)
      return status(.ok)
    default: return status(.invalidArgument)
    }
  }

  private static func list(_ texts: [String]) -> [UInt8] { texts.flatMap { Array($0.utf8) + [0] } }
}
