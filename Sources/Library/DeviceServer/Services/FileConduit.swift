import Basics

/// Apple's file conduit (AFC) for the shared files of a device. It supports the operations that backup clients use.
///
/// The fixed part of a request contains these values. Numbers are little-endian and have eight bytes.
///
/// ```
/// open                mode, path
/// read                handle, number of bytes
/// write               handle; the payload has the bytes
/// seek                handle, `whence` of lseek(2), offset
/// lock                handle, operation of flock(2)
/// tell, close         handle
/// all others          path, or nothing
/// ```
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

  /// The operation and the bytes of an answer.
  private struct Answer {
    let operation: Operation
    let bytes: [UInt8]

    static func status(_ status: Status) -> Answer {
      Answer(operation: .status, bytes: littleEndianBytes(status.rawValue))
    }

    /// Creates an answer with texts. A NUL ends each text.
    static func list(_ texts: [String]) -> Answer {
      Answer(operation: .data, bytes: texts.flatMap { Array($0.utf8) + [0] })
    }
  }

  private struct OpenFile {
    let path: String
    var offset = 0
    let canRead: Bool
    let canWrite: Bool
    let appends: Bool
  }

  private static let maximumOpenCount = 16
  private static let maximumOffset = 1 << 30
  /// `SEEK_SET` of lseek(2).
  private static let seekFromStart: UInt64 = 0
  /// The unit of `st_blocks`.
  private static let blockByteCount = 512
  /// The time of every file, in nanoseconds since 1970.
  private static let time = "1000000000000000000"
  private static let maximumReadByteCount: UInt64 = 4 << 20
  private let files: SharedFiles
  private var handles: [UInt64: OpenFile] = [:]
  private var lastHandle: UInt64 = 0

  package init(_ files: SharedFiles) { self.files = files }

  deinit { files.unlock(for: self) }

  /// Serves a connection until the client ends it. The connection's file lock is then released.
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
    let answer = answer(to: Operation(rawValue: packet.operation), packet)
    // The bytes of a `data` answer are the packet's payload. The bytes of every other answer are its fixed part.
    let isPayload = answer.operation == .data
    return FileConduitPacket(
      number: packet.number, operation: answer.operation.rawValue, fixedPart: isPayload ? [] : answer.bytes,
      payload: isPayload ? answer.bytes : [])
  }

  private func answer(to operation: Operation?, _ request: FileConduitPacket) -> Answer {
    switch operation {
    case .fileInfo: return fileInfo(request)
    case .deviceInfo:
      return .list([
        "Model", "iPhone", "FSTotalBytes", "64000000000", "FSFreeBytes", "32000000000", "FSBlockSize", "4096",
      ])
    case .list: return list(request)
    case .makeDirectory:
      guard let path = request.path() else { return .status(.invalidArgument) }
      return .status(files.makeDirectory(path) ? .ok : .denied)
    case .remove: return remove(request)
    case .open: return open(mode: request.integer(at: 0), path: request.path(at: 8))
    case .close:
      guard let handle = request.integer(at: 0), handles.removeValue(forKey: handle) != nil else {
        return .status(.invalidArgument)
      }
      return .status(.ok)
    case .read: return read(request)
    case .write: return write(request)
    case .seek: return seek(request)
    case .tell:
      guard let handle = request.integer(at: 0), let file = handles[handle] else { return .status(.invalidArgument) }
      return Answer(operation: .position, bytes: littleEndianBytes(UInt64(file.offset)))
    case .lock: return lock(request)
    case .status, .data, .opened, .position, nil: return .status(.unsupported)
    }
  }

  // MARK: Paths

  private func fileInfo(_ request: FileConduitPacket) -> Answer {
    guard let path = request.path() else { return .status(.invalidArgument) }
    guard let node = files.node(at: path) else { return .status(.notFound) }
    let byteCount = node.bytes.count
    let blockCount = (byteCount + Self.blockByteCount - 1) / Self.blockByteCount
    return .list([
      "st_size", String(byteCount), "st_blocks", String(blockCount), "st_nlink", "1",
      "st_ifmt", node.isDirectory ? "S_IFDIR" : "S_IFREG", "st_mtime", Self.time, "st_birthtime", Self.time,
    ])
  }

  private func list(_ request: FileConduitPacket) -> Answer {
    guard let path = request.path() else { return .status(.invalidArgument) }
    guard let names = files.names(in: path) else { return .status(.notFound) }
    return .list([".", ".."] + names)
  }

  private func remove(_ request: FileConduitPacket) -> Answer {
    guard let path = request.path() else { return .status(.invalidArgument) }
    guard files.node(at: path) != nil else { return .status(.notFound) }
    return .status(files.remove(path) ? .ok : .denied)
  }

  // MARK: Open files

  /// The modes in which a client opens a file, in the order of `fopen`'s r, r+, w, w+, a and a+.
  private enum OpenMode: UInt64 {
    case read = 1
    case readAndWrite = 2
    case truncate = 3
    case truncateAndRead = 4
    case append = 5
    case appendAndRead = 6
  }

  private func open(mode: UInt64?, path: String?) -> Answer {
    guard let mode = mode.flatMap(OpenMode.init(rawValue:)), let path else { return .status(.invalidArgument) }
    guard handles.count < Self.maximumOpenCount else { return .status(.denied) }
    if mode == .read {
      guard let node = files.node(at: path), !node.isDirectory else { return .status(.notFound) }
    } else {
      let truncates = mode == .truncate || mode == .truncateAndRead
      guard files.makeFile(path, truncates: truncates) else { return .status(.denied) }
    }
    lastHandle += 1
    handles[lastHandle] = OpenFile(
      path: path, canRead: mode != .truncate && mode != .append, canWrite: mode != .read,
      appends: mode == .append || mode == .appendAndRead)
    return Answer(operation: .opened, bytes: littleEndianBytes(lastHandle))
  }

  private func read(_ request: FileConduitPacket) -> Answer {
    guard let handle = request.integer(at: 0), let count = request.integer(at: 8),
      var file = handles[handle], file.canRead, let node = files.node(at: file.path)
    else { return .status(.invalidArgument) }
    let bytes = node.bytes.dropFirst(file.offset).prefix(Int(min(count, Self.maximumReadByteCount)))
    file.offset += bytes.count
    handles[handle] = file
    return Answer(operation: .data, bytes: Array(bytes))
  }

  private func write(_ request: FileConduitPacket) -> Answer {
    guard let handle = request.integer(at: 0), var file = handles[handle], file.canWrite else {
      return .status(.invalidArgument)
    }
    if file.appends { file.offset = files.node(at: file.path)?.bytes.count ?? 0 }
    guard files.write(request.payload, to: file.path, at: file.offset) else { return .status(.denied) }
    file.offset += request.payload.count
    handles[handle] = file
    return .status(.ok)
  }

  /// Sets the position of a file. Only positions from the start of the file are supported.
  private func seek(_ request: FileConduitPacket) -> Answer {
    guard let handle = request.integer(at: 0), var file = handles[handle], request.integer(at: 8) == Self.seekFromStart,
      let offset = request.integer(at: 16).flatMap({ Int(exactly: $0) }), offset <= Self.maximumOffset
    else { return .status(.invalidArgument) }
    file.offset = offset
    handles[handle] = file
    return .status(.ok)
  }

  /// The operations of flock(2), each combined with `LOCK_NB`: they fail instead of waiting.
  private enum LockOperation: UInt64 {
    case lockShared = 5
    case lockExclusively = 6
    case unlock = 12
  }

  private func lock(_ request: FileConduitPacket) -> Answer {
    guard let handle = request.integer(at: 0), handles[handle] != nil, let operation = request.integer(at: 8) else {
      return .status(.invalidArgument)
    }
    switch LockOperation(rawValue: operation) {
    case .lockShared, .lockExclusively: return .status(files.lock(for: self) ? .ok : .wouldBlock)
    case .unlock:
      files.unlock(for: self)
      return .status(.ok)
    case nil: return .status(.invalidArgument)
    }
  }
}

extension FileConduitPacket {
  /// Returns the integer at an offset of the fixed part, or `nil` if the part ends before.
  fileprivate func integer(at offset: Int) -> UInt64? { littleEndianNumber(fixedPart, at: offset) }

  /// Returns the path at an offset of the fixed part, or `nil` if there is none or it is not valid.
  fileprivate func path(at offset: Int = 0) -> String? {
    guard offset < fixedPart.count else { return nil }
    return SharedFiles.normalized(fixedPart[offset...].prefix { $0 != 0 })
  }
}
