import Foundation
import KeyhaulKit

@testable import DeviceServer

/// A backup client that stores its files in memory and responds to the device's messages.
///
/// A message is the length of a property list in four bytes, and the property list: an array that begins with the
/// message's name. After `DLMessageUploadFiles`, the device sends files (see `receiveFile`).
final class MemoryClient: ByteChannel {
  /// The error codes of a response. All except `success` are codes of Apple's `MBErrorDomain`.
  enum ErrorCode {
    static let success: Int64 = 0, other: Int64 = 1, notFound: Int64 = 4, noSpace: Int64 = 105
    static let noBackup: Int64 = 205, wrongPassword: Int64 = 207, deviceLocked: Int64 = 208
  }

  private struct State {
    var files: [String: [UInt8]] = [:]
    var directories: Set<String> = []
    var freeByteCount: Int64 = 1 << 40
    /// The bytes that the device has not read yet.
    var input: [UInt8] = []
    /// The bytes from the device that are not processed yet.
    var received: [UInt8] = []
    var messages: [String] = []
    var isReceivingFiles = false
    var response: PropertyDictionary?
    /// The number of bytes that the device can still read before the stream ends.
    var readableByteCount = Int.max
    var readByteCount = 0
    /// The offset of a byte that is changed on its way to the device.
    var changedOffset: Int?
  }

  private let state: Locked<State>

  /// Creates a client that has sent its greeting.
  ///
  /// - Parameters:
  ///   - files: The files in the client's folder, by path.
  ///   - freeByteCount: The free space of the client's disk.
  ///   - readableByteCount: The number of bytes after which the client's stream ends.
  ///   - changedOffset: The offset of a byte that is changed on its way to the device.
  init(
    files: [String: [UInt8]] = [:], freeByteCount: Int64 = 1 << 40, readableByteCount: Int = .max,
    changedOffset: Int? = nil
  ) {
    var state = State()
    state.files = files
    state.freeByteCount = freeByteCount
    state.readableByteCount = readableByteCount
    state.changedOffset = changedOffset
    state.input = Self.message([.string("DLMessageVersionExchange"), .string("DLVersionsOk"), .integer(400)])
    state.input += Self.message([
      .string("DLMessageProcessMessage"),
      .dictionary(["MessageName": .string("Hello"), "SupportedProtocolVersions": .array([.real(2.0), .real(2.1)])]),
    ])
    self.state = Locked(state)
  }

  private static func message(_ values: [PropertyValue]) -> [UInt8] {
    (try? PropertyListFrame.bytes(of: .array(values), as: .binary)) ?? []
  }

  var files: [String: [UInt8]] { state.withLock { $0.files } }
  /// The names of the device's messages.
  var messages: [String] { state.withLock { $0.messages } }
  /// The device's response to the request.
  var response: PropertyDictionary? { state.withLock { $0.response } }
  /// The number of bytes that the device has read.
  var readByteCount: Int { state.withLock { $0.readByteCount } }

  /// Runs one request.
  ///
  /// - Returns: The error code of the device's response, or `nil` if there was no response.
  func run(_ request: PropertyDictionary, on device: ServedDevice) -> Int64? {
    state.withLock { state in
      state.input += Self.message([.string("DLMessageProcessMessage"), .dictionary(request)])
    }
    try? BackupConversation(device, on: self).run()
    return response?["ErrorCode"]?.integerValue
  }

  func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    state.withLock { state in
      var bytes = Array(state.input.prefix(min(count, state.readableByteCount)))
      state.input.removeFirst(bytes.count)
      state.readableByteCount -= bytes.count
      if let offset = state.changedOffset, bytes.indices.contains(offset - state.readByteCount) {
        bytes[offset - state.readByteCount] ^= 0x15
      }
      state.readByteCount += bytes.count
      return bytes
    }
  }

  func close() {}

  func write(_ bytes: [UInt8]) throws(WireError) {
    state.withLock { state in
      state.received += bytes
      while state.isReceivingFiles ? Self.receiveFile(&state) : Self.receiveMessage(&state) {}
    }
  }

  private static func bigEndianNumber(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }

  /// Processes the next message of the device.
  ///
  /// - Returns: Whether the message was complete.
  private static func receiveMessage(_ state: inout State) -> Bool {
    guard state.received.count >= 4 else { return false }
    let end = 4 + bigEndianNumber(state.received[0..<4])
    guard state.received.count >= end else { return false }
    let body = Array(state.received[4..<end])
    state.received.removeFirst(end)
    guard let elements = (try? PropertyListFrame.value(of: body))?.arrayValue, let name = elements.first?.stringValue
    else { return false }
    state.messages.append(name)
    respond(to: name, elements, &state)
    return true
  }

  /// Stores the next file of the device, or ends the upload.
  ///
  /// A file consists of two names, blocks, and a block with the code 0. Each name and block follows its length in four
  /// bytes. A block begins with its code. The length 0 instead of a name ends the upload.
  ///
  /// - Returns: Whether the file was complete.
  private static func receiveFile(_ state: inout State) -> Bool {
    var offset = 0
    func next(_ count: Int) -> ArraySlice<UInt8>? {
      guard state.received.count - offset >= count else { return nil }
      defer { offset += count }
      return state.received[offset..<(offset + count)]
    }
    func nextField() -> ArraySlice<UInt8>? { next(4).flatMap { next(bigEndianNumber($0)) } }

    guard let displayName = nextField() else { return false }
    if displayName.isEmpty {
      state.received.removeFirst(offset)
      state.isReceivingFiles = false
      state.input += status(ErrorCode.success)
      return true
    }
    guard let path = nextField() else { return false }
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
    message([.string("DLMessageStatusResponse"), .integer(code), .string(DeviceLink.emptyParameter), value])
  }

  private static func respond(to name: String, _ elements: [PropertyValue], _ state: inout State) {
    switch name {
    case "DLMessageProcessMessage":
      // The device's greeting has a protocol version, and its response has none.
      guard let response = elements[1].dictionaryValue, response["ProtocolVersion"] == nil else { return }
      state.response = response
      state.input += message([.string("DLMessageDisconnect"), .string(DeviceLink.emptyParameter)])
    case "DLMessageUploadFiles": state.isReceivingFiles = true
    case "DLMessageDownloadFiles": sendFiles(paths(in: elements[1]), &state)
    case "DLMessageGetFreeDiskSpace":
      state.input += status(ErrorCode.success, .integer(state.freeByteCount))
    case "DLMessageCreateDirectory", "DLMessageMoveItems", "DLMessageRemoveItems", "DLMessageCopyItem":
      changeFiles(name, elements, &state)
      state.input += status(ErrorCode.success)
    default: break
    }
  }

  private static func paths(in value: PropertyValue) -> [String] { value.arrayValue?.compactMap(\.stringValue) ?? [] }

  private static func sendFiles(_ paths: [String], _ state: inout State) {
    var isMissing = false
    for path in paths {
      state.input += DeviceLink.lengthAndBytes(Array(path.utf8))
      if let bytes = state.files[path] {
        if !bytes.isEmpty { state.input += DeviceLink.block(.data, bytes) }
        state.input += DeviceLink.block(.success)
      } else {
        isMissing = true
        state.input += DeviceLink.block(.localError, Array("No such file".utf8))
      }
    }
    let end: [UInt8] = [0, 0, 0, 0]
    state.input += end
    state.input += status(isMissing ? HostStatus.several : ErrorCode.success)
  }

  private static func changeFiles(_ name: String, _ elements: [PropertyValue], _ state: inout State) {
    switch name {
    case "DLMessageCreateDirectory": state.directories.insert(elements[1].stringValue ?? "")
    case "DLMessageMoveItems":
      for entry in elements[1].dictionaryValue?.entries ?? [] {
        guard let from = entry.key.stringValue, let to = entry.value.stringValue else { continue }
        state.files[to] = state.files.removeValue(forKey: from)
      }
    case "DLMessageRemoveItems":
      for path in paths(in: elements[1]) {
        state.files = state.files.filter { $0.key != path && !$0.key.hasPrefix(path + "/") }
      }
    case "DLMessageCopyItem":
      state.files[elements[2].stringValue ?? ""] = state.files[elements[1].stringValue ?? ""]
    default: break
    }
  }
}
