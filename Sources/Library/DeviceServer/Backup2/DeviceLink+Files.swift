import Basics
import KeychainFormats

/// Transfers files between messages. All lengths have 32 bits in network byte order.
///
/// ```
/// files     file, …, 0 (an empty name)
/// file      length and bytes of the name, blocks; a device sends two names
/// block     length of the code and the data, code (1 byte), data
/// ```
extension DeviceLink {
  /// The kind of a block: the byte after its length.
  package enum BlockCode: UInt8, Sendable {
    case success = 0x00
    case localError = 0x06
    case remoteError = 0x0B
    case data = 0x0C
  }

  private static let maximumNameByteCount = 4096
  private static let maximumBlockByteCount = 16 << 20
  private static let chunkByteCount = 256 << 10

  // MARK: From the device to the client

  /// A file to be sent.
  package struct OutgoingFile {
    /// The name that a client displays.
    let displayName: String
    /// The path in the client's folder.
    let path: String
    let byteCount: Int64
    /// Passes the bytes in chunks to a closure.
    let forEachChunk: (([UInt8]) throws(BackupServiceError) -> Void) throws(BackupServiceError) -> Void

    /// Creates an outgoing file from bytes in memory.
    package init(_ bytes: [UInt8], displayName: String, to path: String) {
      self.displayName = displayName
      self.path = path
      byteCount = Int64(bytes.count)
      forEachChunk = { (body) throws(BackupServiceError) in
        var remaining = bytes[...]
        while !remaining.isEmpty {
          try body(Array(remaining.prefix(chunkByteCount)))
          remaining = remaining.dropFirst(chunkByteCount)
        }
      }
    }

    /// Creates an outgoing file from a file on this machine.
    init(_ file: StagedFile, displayName: String, to path: String) {
      self.displayName = displayName
      self.path = path
      byteCount = file.byteCount
      forEachChunk = { (body) throws(BackupServiceError) in try file.forEachChunk(ofAtMost: chunkByteCount, body) }
    }
  }

  /// Sends files, and waits for the client's answer.
  package func upload(_ files: [OutgoingFile], progress: Double) throws(BackupServiceError) {
    let total = files.reduce(Int64(0)) { $0 + $1.byteCount }
    try send("DLMessageUploadFiles", [.dictionary([:]), .real(progress), .integer(total)])
    for file in files {
      // A file's first bytes are sent together with its names, because small packets would wait for each other.
      var pending = Self.lengthAndBytes(Array(file.displayName.utf8)) + Self.lengthAndBytes(Array(file.path.utf8))
      try file.forEachChunk { (chunk) throws(BackupServiceError) in
        pending += Self.block(.data, chunk)
        if pending.count >= Self.chunkByteCount {
          try write(pending)
          pending = []
        }
      }
      try write(pending + Self.block(.success))
    }
    try write(bigEndianBytes(UInt32(0)))
    let status = try status()
    guard status.code == 0 else {
      throw .failed(.cannotWrite, "the computer could not store files (\(status.code))")
    }
  }

  /// Returns the bytes of a block.
  package static func block(_ code: BlockCode, _ bytes: [UInt8] = []) -> [UInt8] {
    bigEndianBytes(UInt32(truncatingIfNeeded: bytes.count + 1)) + [code.rawValue] + bytes
  }

  /// Returns bytes with their length in front.
  package static func lengthAndBytes(_ bytes: [UInt8]) -> [UInt8] {
    bigEndianBytes(UInt32(truncatingIfNeeded: bytes.count)) + bytes
  }

  // MARK: From the client to the device

  /// Asks the client for a file.
  ///
  /// - Parameters:
  ///   - path: The path in the client's folder.
  ///   - limit: The maximum number of bytes that are accepted.
  ///   - progress: The progress of the backup or restore after this file, 0 to 100.
  ///   - receiveChunk: Called with each chunk of the file, in order.
  /// - Returns: Whether the client has the file.
  package func download(
    _ path: String, atMost limit: Int, progress: Double = 0,
    _ receiveChunk: ([UInt8]) throws(BackupServiceError) -> Void
  ) throws(BackupServiceError) -> Bool {
    try send("DLMessageDownloadFiles", [.array([.string(path)]), .dictionary([:]), .real(progress)])
    let isFound = try receiveFile(named: path, atMost: limit, receiveChunk)
    let status = try status()
    guard status.code == 0 || status.code == HostStatus.several || status.code == HostStatus.notFound else {
      throw .failed(.cannotRead, "the computer could not read its files (\(status.code))")
    }
    return isFound && status.code == 0
  }

  /// Reads the bytes of one file and the end of the list of files.
  ///
  /// - Returns: `false` if the client sends no file, or an error in place of the file.
  package func receiveFile(
    named path: String, atMost limit: Int, _ receiveChunk: ([UInt8]) throws(BackupServiceError) -> Void
  ) throws(BackupServiceError) -> Bool {
    let nameByteCount = try readLength()
    // A client may end the list without the file.
    if nameByteCount == 0 { return false }
    guard nameByteCount <= Self.maximumNameByteCount else {
      throw Self.protocolError("a file name of \(nameByteCount) bytes")
    }
    guard try read(nameByteCount) == Array(path.utf8) else { throw Self.protocolError("the client sent another file") }
    let isFound = try receiveBlocks(atMost: limit, receiveChunk)
    guard try readLength() == 0 else { throw Self.protocolError("the client sent a file that was not asked for") }
    return isFound
  }

  /// Reads the blocks of a file.
  ///
  /// - Returns: `false` if the client reports an error.
  private func receiveBlocks(
    atMost limit: Int, _ receiveChunk: ([UInt8]) throws(BackupServiceError) -> Void
  ) throws(BackupServiceError) -> Bool {
    var byteCount = 0
    while true {
      let (code, dataByteCount) = try readBlockHeader()
      switch code {
      case .data:
        byteCount += dataByteCount
        guard byteCount <= limit else { throw Self.protocolError("a file of more than \(limit) bytes") }
        if dataByteCount > 0 { try receiveChunk(try read(dataByteCount)) }
      case .success:
        guard dataByteCount == 0 else { throw Self.protocolError("bytes behind the end of a file") }
        return true
      case .localError:
        // The data is the text of the error.
        guard dataByteCount < Self.maximumNameByteCount else {
          throw Self.protocolError("an error text of \(dataByteCount) bytes")
        }
        if dataByteCount > 0 { _ = try read(dataByteCount) }
        return false
      case .remoteError: throw Self.protocolError("a block that only a device sends")
      }
    }
  }

  private func readBlockHeader() throws(BackupServiceError) -> (code: BlockCode, dataByteCount: Int) {
    let length = try readLength()
    guard length >= 1, length <= Self.maximumBlockByteCount else {
      throw Self.protocolError("a block of \(length) bytes")
    }
    guard let code = try read(1).first.flatMap(BlockCode.init(rawValue:)) else {
      throw Self.protocolError("a block of an unknown kind")
    }
    return (code, length - 1)
  }

  private func readLength() throws(BackupServiceError) -> Int { Int(bigEndianInteger(try read(4))) }

  /// Asks the client for a small file.
  ///
  /// - Returns: The file's bytes; `nil` if the client does not have the file.
  package func downloadBytes(_ path: String, atMost limit: Int) throws(BackupServiceError) -> [UInt8]? {
    var bytes: [UInt8] = []
    let isFound = try download(path, atMost: limit) { (chunk) throws(BackupServiceError) in bytes += chunk }
    return isFound ? bytes : nil
  }
}
