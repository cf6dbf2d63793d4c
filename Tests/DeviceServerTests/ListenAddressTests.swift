import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

@Suite("Listening addresses")
struct ListenAddressTests {
  @Test(
    "Only loopback addresses and paths are accepted",
    arguments: [
      ("127.0.0.1:0", true), ("127.0.0.1:65535", true), ("[::1]:27015", true), ("./phone.sock", true),
      ("phone.sock", true), ("0.0.0.0:27015", false), ("127.0.0.1:65536", false), ("127.0.0.1", false),
      ("192.168.1.2:27015", false), ("localhost:27015", false), ("*:27015", false), ("[::]:27015", false), ("", false),
      ("host:1.sock", false),
    ])
  func addresses(text: String, isAccepted: Bool) {
    #expect((ListenAddress(text) != nil) == isAccepted)
  }

  @Test("The system's own usbmuxd is never replaced")
  func systemSocket() {
    #expect(ListenAddress.isSystemSocket("/var/run/usbmuxd"))
    #expect(ListenAddress.isSystemSocket("/run/usbmuxd"))
    #expect(ListenAddress.isSystemSocket("/run/../run/usbmuxd"))
    #expect(!ListenAddress.isSystemSocket("./usbmuxd"))
  }

  @Test("Only the owner can use a socket, a second server is refused, and the socket is removed with its server")
  func socket() throws {
    let folder = try TemporaryDirectory()
    let phone = try ServedPhone()
    let path = folder.path("phone.sock")
    do {
      let server = try DeviceServer([phone.served], at: .path(path)) { _ in }
      #expect(server.address == "UNIX:\(path)")
      #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o600)
      #expect(throws: ListenError.answered(path)) { try DeviceServer([phone.served], at: .path(path)) { _ in } }
    }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("A server does not replace another file with its socket")
  func occupiedPath() throws {
    let folder = try TemporaryDirectory()
    let phone = try ServedPhone()
    try folder.write([1], to: "file.sock")
    #expect(throws: ListenError.occupied(folder.path("file.sock"))) {
      try DeviceServer([phone.served], at: .path(folder.path("file.sock"))) { _ in }
    }
  }
}
