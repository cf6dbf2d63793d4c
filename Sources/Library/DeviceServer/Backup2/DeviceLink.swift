import Basics
package import KeychainFormats

/// The client's answer to one of the device's messages.
package struct HostStatus: Sendable, Hashable {
  /// The code that a client sends for a file that it does not have.
  package static let notFound: Int64 = -6
  /// The code of a directory that exists already.
  package static let exists: Int64 = -7
  /// The code of an answer about several files.
  package static let several: Int64 = -13

  /// 0 for success.
  package let code: Int64
  package let text: String
  package let value: PropertyValue

  /// Reads the elements after the message's name.
  ///
  /// - Returns: `nil` if they are not a status.
  package init?(_ elements: [PropertyValue]) {
    guard let code = elements.first?.signedValue else { return nil }
    self.code = code
    text = elements.dropFirst().first?.stringValue ?? ""
    value = elements.dropFirst(2).first ?? .string(DeviceLink.emptyParameter)
  }
}

/// DeviceLink: messages in frames, and between them the bytes of files.
///
/// Source: libimobiledevice, `device_link_service.c` and `idevicebackup2.c`.
package struct DeviceLink: Sendable {
  /// A message: its name and the elements after the name.
  package struct Message: Sendable, Hashable {
    package let name: String
    package let elements: [PropertyValue]

    /// Reads a message.
    ///
    /// - Returns: `nil` if the value is not an array that begins with a text.
    package init?(_ value: PropertyValue) {
      guard let array = value.arrayValue, let name = array.first?.stringValue else { return nil }
      (self.name, elements) = (name, Array(array.dropFirst()))
    }
  }

  /// The placeholder for a missing text.
  package static let emptyParameter = "___EmptyParameterString___"
  /// The version that every client accepts; some reject version 400.
  package static let version: (major: Int64, minor: Int64) = (300, 0)
  /// The versions of the backup protocol, the newest last.
  package static let protocolVersions = [2.0, 2.1]

  /// The maximum wait for a client's answer. The client may copy many files for one message.
  private static let answerLimit = Duration.seconds(300)

  package let channel: any ByteChannel

  package init(_ channel: any ByteChannel) { self.channel = channel }

  /// Reads the client's next message.
  ///
  /// - Parameter limit: The maximum wait; `nil` between requests, when a client may take its time.
  /// - Returns: `nil` if the stream has ended.
  package func receive(within limit: Duration?) throws(BackupServiceError) -> Message? {
    do throws(WireError) {
      guard let value = try PropertyListFrame.deviceLink.read(from: channel, within: limit) else { return nil }
      guard let message = Message(value) else { throw WireError(.malformed, "a message without a name") }
      return message
    } catch {
      throw .connection(error)
    }
  }

  /// Sends a message.
  package func send(_ name: String, _ elements: [PropertyValue] = []) throws(BackupServiceError) {
    try write(try Self.frame(name, elements))
  }

  /// Returns the bytes of a message.
  package static func frame(_ name: String, _ elements: [PropertyValue]) throws(BackupServiceError) -> [UInt8] {
    do throws(WireError) {
      return try PropertyListFrame.bytes(of: .array([.string(name)] + elements), as: .binary)
    } catch {
      throw .connection(error)
    }
  }

  func write(_ bytes: [UInt8]) throws(BackupServiceError) {
    do throws(WireError) { try channel.write(bytes) } catch { throw .connection(error) }
  }

  func read(_ count: Int) throws(BackupServiceError) -> [UInt8] {
    do throws(WireError) {
      return try channel.read(exactly: count, within: Self.answerLimit)
    } catch {
      throw .connection(error)
    }
  }

  static func protocolError(_ reason: String) -> BackupServiceError { .connection(WireError(.malformed, reason)) }

  /// Agrees on the versions of DeviceLink.
  package func exchangeVersions() throws(BackupServiceError) {
    try send("DLMessageVersionExchange", [.integer(Self.version.major), .integer(Self.version.minor)])
    guard let answer = try receive(within: Self.answerLimit) else { throw .connection(.closed) }
    guard answer.name == "DLMessageVersionExchange", answer.elements.first?.stringValue == "DLVersionsOk" else {
      throw Self.protocolError("the client did not accept the version of DeviceLink")
    }
    try send("DLMessageDeviceReady")
  }

  // MARK: Responses

  /// Returns the dictionary of a response to a request.
  package static func response(failure: BackupFailure?, content: PropertyDictionary = [:]) -> PropertyValue {
    var response: PropertyDictionary = [
      "MessageName": .string("Response"), "ErrorCode": .integer(failure?.code.rawValue ?? 0),
    ]
    response["ErrorDescription"] = failure.map { .string($0.text) }
    for entry in content.entries { response.entries.append(entry) }
    return .dictionary(response)
  }

  /// Answers a request.
  package func respond(
    with content: PropertyDictionary = [:], failure: BackupFailure? = nil
  ) throws(BackupServiceError) {
    try send("DLMessageProcessMessage", [Self.response(failure: failure, content: content)])
  }

  // MARK: Messages to the client

  /// Waits for the client's answer to a message.
  func status() throws(BackupServiceError) -> HostStatus {
    guard let message = try receive(within: Self.answerLimit) else { throw .connection(.closed) }
    if message.name == "DLMessageDisconnect" { throw .connection(.closed) }
    guard message.name == "DLMessageStatusResponse", let status = HostStatus(message.elements) else {
      throw Self.protocolError("the client sent another message than its status")
    }
    return status
  }

  private func ask(
    _ name: String, _ elements: [PropertyValue], accepting acceptedCodes: Set<Int64> = []
  ) throws(BackupServiceError) -> HostStatus {
    try send(name, elements)
    let status = try status()
    guard status.code == 0 || acceptedCodes.contains(status.code) else {
      throw .failed(.cannotWrite, "the computer answered \(name) with \(status.code)")
    }
    return status
  }

  package func createDirectory(_ path: String, progress: Double) throws(BackupServiceError) {
    _ = try ask(
      "DLMessageCreateDirectory", [.string(path), .dictionary([:]), .real(progress)], accepting: [HostStatus.exists])
  }

  /// Moves files.
  package func move(_ paths: [(from: String, to: String)], progress: Double) throws(BackupServiceError) {
    let pairs = PropertyDictionary(paths.map { .init(key: .string($0.from), value: .string($0.to)) })
    _ = try ask("DLMessageMoveItems", [.dictionary(pairs), .dictionary([:]), .real(progress)])
  }

  /// Removes files, and directories with everything in them; a missing file is not an error.
  package func remove(_ paths: [String], progress: Double) throws(BackupServiceError) {
    _ = try ask(
      "DLMessageRemoveItems", [.array(paths.map { .string($0) }), .dictionary([:]), .real(progress)],
      accepting: [HostStatus.notFound])
  }

  package func copy(_ source: String, to destination: String) throws(BackupServiceError) {
    _ = try ask("DLMessageCopyItem", [.string(source), .string(destination), .dictionary([:]), .real(0)])
  }

  /// Returns the number of free bytes in the client's folder.
  package func freeByteCount() throws(BackupServiceError) -> Int64 {
    let status = try ask("DLMessageGetFreeDiskSpace", [])
    return switch status.value {
    case .integer(let number): number
    case .unsignedInteger: .max
    default: throw Self.protocolError("the client did not say how much space is free")
    }
  }
}
