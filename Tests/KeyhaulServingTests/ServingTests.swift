import Foundation
import KeyhaulServing
import KeyhaulTesting
import TestSupport
import Testing

@testable import Basics

@Suite("Phones that are served in a test")
struct ServingTests {
  /// A request for the list of devices: four little-endian numbers (the length, the version 1, the message type 8 for a
  /// property list, and the tag 1), and the property list.
  private var listRequest: [UInt8] {
    let body = Array(
      """
      <plist version="1.0"><dict><key>MessageType</key><string>ListDevices</string></dict></plist>
      """.utf8)
    let header = [16 + body.count, 1, 8, 1].flatMap { [UInt8](littleEndian: $0, count: 4) }
    return header + body
  }

  @Test("A client reaches the phone at its address until the closure returns")
  func address() throws {
    let phone = try Phone()
    let port = try phone.serve { address in
      let port = try #require(UInt16(address.split(separator: ":").last ?? ""))
      let socket = try StreamSocket(loopbackPort: port)
      try socket.write(listRequest)
      var answer: [UInt8] = []
      while !String(decoding: answer, as: UTF8.self).contains("</plist>") {
        let bytes = try socket.read(upTo: 4096, within: .seconds(10))
        guard !bytes.isEmpty else { break }
        answer += bytes
      }
      #expect(String(decoding: answer, as: UTF8.self).contains("SerialNumber"))
      return port
    }
    #expect(throws: (any Error).self) { try StreamSocket(loopbackPort: port) }
  }

  @Test("A phone can be served only once at a time, and again afterwards")
  func twice() throws {
    let phone = try Phone()
    try phone.serve { _ in
      #expect(throws: ServingError.self) { try phone.serve { _ in } }
    }
    try phone.serve { _ in }
  }
}
