import Foundation
import Testing

@testable import keyhaul

@Suite("Serving devices to backup clients")
struct DeviceServeTests {
  let sandbox: DeviceSandbox

  init() throws {
    sandbox = try DeviceSandbox()
    try sandbox.run("keyhaul device create d --passcode-command 'echo 1' -q")
  }

  @Test(
    "An unusable address, a device named twice, --json and a missing terminal are usage errors",
    arguments: [
      ("device serve d --trust once --listen 0.0.0.0:27015", "is not an address to listen at"),
      ("device serve d --trust once --listen 192.168.1.2:27015", "is not an address to listen at"),
      ("device serve d --trust once --listen /var/run/usbmuxd", "belongs to the system's own usbmuxd"),
      ("device serve d d --trust once", "a device is named twice"),
      ("device serve d --trust once --json", "the log of the server is text"),
      ("device serve d --no-input", "nobody can be asked which computers to trust"),
    ])
  func usageErrors(line: String, message: String) throws {
    let outcome = try sandbox.run("keyhaul \(line)")
    #expect(outcome.status == 64, "\(outcome)")
    #expect(outcome.errors.contains(message), "\(outcome.errors)")
    #expect(outcome.output == "")
  }

  @Test("A device with iOS before 10.2 is not served")
  func oldSystem() throws {
    try sandbox.run("keyhaul device create old --ios 9.0 --passcode-command 'echo 1' -q")
    let outcome = try sandbox.run("keyhaul device serve old --trust once")
    #expect(outcome.status == 14, "\(outcome)")
    #expect(outcome.errors.contains("clients back up iOS 10.2 or later"), "\(outcome.errors)")
  }

  @Test("The server prints the line for the client's shell, blocks a second server, and removes its socket at the end")
  func lifecycle() throws {
    let outcome = try sandbox.run(
      """
      keyhaul device serve d --trust once --listen phone.sock >line 2>log & server=$!
      for i in $(seq 600); do test -s line && break; sleep 0.1; done
      test -S phone.sock && echo listens
      stat -c %a phone.sock
      keyhaul device serve d --trust once; echo second server: $?
      kill -TERM $server; wait $server; echo server: $?
      test -e phone.sock || echo removed
      sed "s|$PWD|PATH|" line
      """)
    // The socket has the permissions 600. The exit code 11 means that the device is busy.
    #expect(
      outcome.output == """
        listens
        600
        second server: 11
        server: 0
        removed
        export USBMUXD_SOCKET_ADDRESS=UNIX:PATH/phone.sock

        """, "\(outcome)")
    #expect(outcome.errors.contains("another process serves it"), "\(outcome.errors)")
  }
}
