import Foundation
import KeyhaulServing
import KeyhaulTesting
import TestSupport
import Testing

@testable import Basics

@Suite("Phones that are served in a test")
struct ServingTests {
  @Test("A client reaches the phone at its address until the closure returns")
  func address() throws {
    let phone = try Phone()
    let port = try phone.serve { address in
      let port = try #require(UInt16(address.split(separator: ":").last ?? ""))
      let socket = try StreamSocket(loopbackPort: port)
      let body = Array(
        """
        <plist version="1.0"><dict><key>MessageType</key><string>ListDevices</string></dict></plist>
        """.utf8)
      func number(_ value: Int) -> [UInt8] { Array(bigEndianBytes(UInt32(value)).reversed()) }
      try socket.write(number(16 + body.count) + number(1) + number(8) + number(1) + body)
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
